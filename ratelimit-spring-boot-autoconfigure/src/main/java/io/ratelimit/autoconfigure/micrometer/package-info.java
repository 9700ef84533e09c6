/** Auto-configuration for {@code io.ratelimit.micrometer}. */
@NullMarked
package io.ratelimit.autoconfigure.micrometer;

import org.jspecify.annotations.NullMarked;
