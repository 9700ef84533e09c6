/**
 * The dashboard of the actuator. Start at {@link io.ratelimit.actuate.dashboard.RateLimitDashboard}, which serves the page,
 * its files and its data. {@link io.ratelimit.actuate.dashboard.DecisionHistory} counts the decisions per second, and
 * {@link io.ratelimit.actuate.dashboard.DashboardReader} reads the data.
 */
@NullMarked
package io.ratelimit.actuate.dashboard;

import org.jspecify.annotations.NullMarked;
