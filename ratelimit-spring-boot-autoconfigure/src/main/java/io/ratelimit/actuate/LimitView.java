package io.ratelimit.actuate;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import org.jspecify.annotations.Nullable;

/**
 * Size and rate of buckets, and where it is one, how full it is.
 *
 * @param available the whole tokens in it, brought up to date; null where there are several or it can't be seen
 * @param fullInMs the milliseconds until it is full, rounded up; null likewise
 */
public record LimitView(
        String rate,
        long capacity,
        String refill,
        @Nullable Long available,
        @Nullable Long fullInMs) {

    private static final long NANOS_OF_A_MILLI = 1_000_000;

    static LimitView of(BucketSpec spec) {
        return of(spec, null);
    }

    static LimitView of(BucketSpec spec, @Nullable BucketSnapshot bucket) {
        String refill = Spelling.of(spec.refill());
        return bucket == null
                ? new LimitView(spec.rate().toString(), spec.capacity(), refill, null, null)
                : new LimitView(
                        bucket.rate().toString(),
                        bucket.capacity(),
                        refill,
                        bucket.available(),
                        bucket.resetAfter().plusNanos(NANOS_OF_A_MILLI - 1).toMillis());
    }
}
