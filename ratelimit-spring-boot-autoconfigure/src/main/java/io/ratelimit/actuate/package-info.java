/**
 * What an operator sees of limits and can do about them: start at {@link io.ratelimit.actuate.RateLimitsEndpoint}, and
 * for the page at {@link io.ratelimit.actuate.RateLimitDashboard}. {@link io.ratelimit.actuate.DeniedKeys} knows whom
 * policies deny most, {@link io.ratelimit.actuate.DecisionHistory} when.
 */
@NullMarked
package io.ratelimit.actuate;

import org.jspecify.annotations.NullMarked;
