/** From {@code ratelimit.*} and {@code management.*} to what an operator sees of limits and can do about them. */
@NullMarked
package io.ratelimit.autoconfigure.actuate;

import org.jspecify.annotations.NullMarked;
