/** From {@code ratelimit.*} to the limits on calls of annotated methods. */
@NullMarked
package io.ratelimit.autoconfigure.annotation;

import org.jspecify.annotations.NullMarked;
