/** The auto-configuration of limits on the calls of annotated methods. */
@NullMarked
package io.ratelimit.autoconfigure.annotation;

import org.jspecify.annotations.NullMarked;
