/**
 * How far limiters exceed their limit: {@link io.ratelimit.benchmarks.bounds.Bounds} runs each limiter in each situation, and
 * {@link io.ratelimit.benchmarks.bounds.Grants} counts.
 */
package io.ratelimit.benchmarks.bounds;
