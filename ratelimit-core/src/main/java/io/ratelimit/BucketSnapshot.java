package io.ratelimit;

import java.time.Duration;

/**
 * The contents of a bucket at one moment.
 *
 * @param capacity the tokens of a full bucket
 * @param rate the effective refill rate: the configured one, rounded down by less than 1/10,000 if no clock step fits
 *     it
 * @param available the whole tokens in the bucket
 * @param nextTokenAfter the time until there is one more token; zero if the bucket is full
 * @param resetAfter the time until the bucket is full
 */
public record BucketSnapshot(long capacity, Rate rate, long available, Duration nextTokenAfter, Duration resetAfter) {

    static BucketSnapshot of(TickScale scale, long missing, long nanos) {
        return of(scale, missing, 0, nanos);
    }

    /** @param leave the tokens in the bucket that don't count as available */
    static BucketSnapshot of(TickScale scale, long missing, long leave, long nanos) {
        return new BucketSnapshot(
                scale.spec().capacity(),
                scale.rate(),
                Math.max(scale.tokensLeft(missing) - leave, 0),
                Duration.ofNanos(scale.nanosUntilNextToken(missing, leave, nanos)),
                Duration.ofNanos(scale.nanosUntil(missing, nanos)));
    }
}
