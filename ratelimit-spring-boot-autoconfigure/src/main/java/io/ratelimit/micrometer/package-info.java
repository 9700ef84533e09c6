/**
 * Meters of what is decided, for Micrometer.
 *
 * <p>Start at {@link io.ratelimit.micrometer.RateLimitMeters}: it is told of each decision and counts it by policy, outcome
 * and backend. {@link io.ratelimit.micrometer.BackendMeters} times the calls of Redis. Names of policies are all that
 * tags have of an application, and nothing of a request.
 */
@NullMarked
package io.ratelimit.micrometer;

import org.jspecify.annotations.NullMarked;
