/** Auto-configuration for {@code io.ratelimit.actuate} and {@code io.ratelimit.actuate.dashboard}. */
@NullMarked
package io.ratelimit.autoconfigure.actuate;

import org.jspecify.annotations.NullMarked;
