package io.ratelimit.benchmarks.bounds;

import java.time.Duration;

/**
 * A limit as every limiter can express it: so many tokens in a period, all of which may be taken at once.
 *
 * @param tokens the capacity, and what a period adds
 */
record Limit(int tokens, Duration period) {

    static Limit of(int tokens, int seconds) {
        return new Limit(tokens, Duration.ofSeconds(seconds));
    }

    double perNano() {
        return (double) tokens / period.toNanos();
    }

    int perSecond() {
        return (int) (tokens / period.toSeconds());
    }
}
