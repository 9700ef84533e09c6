/**
 * The actuator's view of limits. Start at {@link io.ratelimit.actuate.RateLimitsEndpoint}, whose responses are
 * {@link io.ratelimit.actuate.Descriptors}. {@code RateLimitHealthIndicator} reports the health of the backend, and
 * {@link io.ratelimit.actuate.DeniedKeys} counts the keys denied most. The dashboard starts at {@code RateLimitDashboard}, which
 * serves the page, its files and its data; {@code DecisionHistory} counts decisions per second, and {@code DashboardReader}
 * reads the data. {@code DemandReader} reads for both which limits the traffic needs.
 */
@NullMarked
package io.ratelimit.actuate;

import org.jspecify.annotations.NullMarked;
