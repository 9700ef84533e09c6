/** A small shop whose API is held to limits: all of them are in {@code application.yml}, none in the code. */
@NullMarked
package io.ratelimit.sample;

import org.jspecify.annotations.NullMarked;
