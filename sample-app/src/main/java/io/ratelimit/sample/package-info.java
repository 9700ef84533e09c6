/** A small shop whose API is held to limits: all but one are in {@code application.yml}, none of those in the code. */
@NullMarked
package io.ratelimit.sample;

import org.jspecify.annotations.NullMarked;
