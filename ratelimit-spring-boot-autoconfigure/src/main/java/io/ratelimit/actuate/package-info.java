/**
 * The actuator's view of limits. Start at {@link io.ratelimit.actuate.RateLimitsEndpoint}, which also contains the
 * descriptors of its responses. {@link io.ratelimit.actuate.RateLimitHealthIndicator} reports the health of the backend, and
 * {@link io.ratelimit.actuate.DeniedKeys} counts the keys denied most.
 */
@NullMarked
package io.ratelimit.actuate;

import org.jspecify.annotations.NullMarked;
