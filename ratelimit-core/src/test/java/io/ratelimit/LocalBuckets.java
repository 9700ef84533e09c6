package io.ratelimit;

import io.ratelimit.Decision.Answer;

/** A look at the ticks of buckets in memory, for tests of other modules. */
public final class LocalBuckets {

    private LocalBuckets() {}

    /** Returns the ticks of a token under a spec. */
    public static long perToken(BucketSpec spec) {
        return TickScale.of(spec, 0, new ManualTimeSource()).price(1);
    }

    /** Returns the ticks that the bucket of taken tokens is missing, and the ticks of a token there. */
    public static long[] missing(BucketStore store, Answer taken, long nanos) {
        BucketState bucket = ((LocalBucketStore) store).buckets(taken.policy()).find(taken.charge());
        return bucket == null
                ? new long[] {0, 1}
                : new long[] {Math.max(bucket.missing(nanos), 0), bucket.scale().price(1)};
    }
}
