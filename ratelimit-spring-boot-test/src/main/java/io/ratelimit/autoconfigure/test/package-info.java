/** Limits in the tests of an application: {@link io.ratelimit.autoconfigure.test.AutoConfigureRateLimit}. */
@NullMarked
package io.ratelimit.autoconfigure.test;

import org.jspecify.annotations.NullMarked;
