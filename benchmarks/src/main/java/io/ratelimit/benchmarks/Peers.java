package io.ratelimit.benchmarks;

import io.github.bucket4j.Bucket;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import java.time.Duration;

/** The limiters of others, as their documentation makes them. */
final class Peers {

    private Peers() {}

    static Bucket bucket4j(long capacity, long tokens, Duration period) {
        return Bucket.builder()
                .addLimit(limit -> limit.capacity(capacity).refillGreedy(tokens, period))
                .build();
    }

    static RateLimiter resilience4j(int permits, Duration period) {
        return RateLimiter.of("benchmark", resilience4jConfig(permits, period));
    }

    /** Returns a configuration without waiting. */
    static RateLimiterConfig resilience4jConfig(int permits, Duration period) {
        return RateLimiterConfig.custom()
                .limitForPeriod(permits)
                .limitRefreshPeriod(period)
                .timeoutDuration(Duration.ZERO)
                .build();
    }
}
