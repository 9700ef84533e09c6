package io.ratelimit.remote.lease;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.TimeSource;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** A place of remote buckets, of which each test has its own. */
public interface LeasePlace {

    /** The contents of a bucket, in the ticks of its spec. */
    record Kept(long missing, long full, long perToken) {}

    /** Returns the store of an instance, on a clock of the place in microseconds. */
    LeasingBucketStore store(LongSupplier micros);

    /**
     * Returns the store of an instance with a clock of its own, which doesn't decide.
     *
     * @param oneByOne whether the store calls for one bucket after the other, where it can
     */
    default LeasingBucketStore store(LongSupplier micros, TimeSource clock, boolean oneByOne) {
        return store(micros);
    }

    /** Returns the value of a bucket; null if there is none. */
    byte @Nullable [] value(Charge charge);

    /** Loses a bucket. */
    void remove(Charge charge);

    /** Returns the bucket of a value at a moment of the place's clock. */
    Kept kept(byte @Nullable [] value, BucketSpec byDefault, long micros);

    /** Returns the spec of a value, which is one of some. */
    BucketSpec spec(byte[] value, List<BucketSpec> specs);

    /**
     * Returns another spec under which a value still counts: it is converted from there if all calls since were denied. Null if
     * there is none.
     */
    default @Nullable BucketSpec origin(byte[] value, long micros) {
        return null;
    }

    /** Returns the ticks of a token under a spec. */
    long perToken(BucketSpec spec);

    /** Returns the nanoseconds of a clock step under a spec. */
    long clockStep(BucketSpec spec);
}
