package io.ratelimit;

import java.time.Duration;

/**
 * A bucket as it was at one moment.
 *
 * @param capacity the tokens it holds when full
 * @param rate the rate at which it really refills: the configured one, but where no clock step fits, rounded down by
 *     less than 1/10,000
 * @param available the whole tokens that were there
 * @param resetAfter the time until it is full
 */
public record BucketSnapshot(long capacity, Rate rate, long available, Duration resetAfter) {

    static BucketSnapshot of(Ticks ticks, long missing, long nanos) {
        return new BucketSnapshot(
                ticks.spec().capacity(),
                ticks.rate(),
                ticks.tokens(Math.max(ticks.full() - missing, 0)),
                Duration.ofNanos(ticks.nanosUntil(missing, nanos)));
    }
}
