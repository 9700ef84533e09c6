package io.ratelimit;

import org.jspecify.annotations.Nullable;

/** A look at the values of a {@link CompareAndSetBucketStore}, for tests of other modules. */
public final class StoredBuckets {

    private StoredBuckets() {}

    /** Returns the spec of a value. */
    public static BucketSpec spec(byte[] value) {
        return new StoredBucket(value, BucketSpec.of("1/s"), 0).state().scale().spec();
    }

    /** Returns the spec of the state from which the next conversion of a value starts; null if it is the value's own. */
    public static @Nullable BucketSpec origin(byte[] value, long micros) {
        BucketConversion origin = new StoredBucket(value, BucketSpec.of("1/s"), micros)
                .state()
                .backlog()
                .origin();
        return origin == null ? null : origin.scale().spec();
    }

    /** Returns the ticks that the bucket of a value is missing, those of a full one, and those of a token. */
    public static long[] missing(byte @Nullable [] value, BucketSpec byDefault, long micros) {
        StoredBucket bucket = new StoredBucket(value, byDefault, micros);
        TickScale scale = bucket.state().scale();
        return new long[] {bucket.missing(), scale.full(), scale.price(1)};
    }

    /** Returns the ticks of a token under a spec. */
    public static long perToken(BucketSpec spec) {
        return TickScale.ofEpoch(spec).price(1);
    }

    /** Returns the nanoseconds of a clock step under a spec; 1 where the steps are batches. */
    public static long clockStep(BucketSpec spec) {
        return spec.refill() == BucketSpec.Refill.GREEDY ? TickScale.ofEpoch(spec).stepNanos : 1;
    }
}
