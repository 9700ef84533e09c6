/**
 * The actuator's view of limits. Start at {@link io.ratelimit.actuate.RateLimitsEndpoint}, whose responses are
 * {@link io.ratelimit.actuate.Descriptors}. {@code RateLimitHealthIndicator} reports the health of the backend, and
 * {@link io.ratelimit.actuate.DeniedKeys} counts the keys denied most.
 */
@NullMarked
package io.ratelimit.actuate;

import org.jspecify.annotations.NullMarked;
