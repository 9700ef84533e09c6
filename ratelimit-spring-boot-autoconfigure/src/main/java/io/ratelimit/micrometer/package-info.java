/**
 * Meters for Micrometer.
 *
 * <p>Start at {@link io.ratelimit.micrometer.RateLimitMeters}: it counts each decision by policy, outcome and backend,
 * and times the calls of Redis. Tags contain names of policies, and no data of a request.
 */
@NullMarked
package io.ratelimit.micrometer;

import org.jspecify.annotations.NullMarked;
