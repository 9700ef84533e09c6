package io.ratelimit.remote.lease;

import io.ratelimit.BucketSpec;
import io.ratelimit.StoredBuckets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A place with the values of a {@link io.ratelimit.CompareAndSetBucketStore}. */
public interface StoredPlace extends LeasePlace {

    @Override
    default Kept kept(byte @Nullable [] value, BucketSpec byDefault, long micros) {
        long[] ticks = StoredBuckets.missing(value, byDefault, micros);
        return new Kept(ticks[0], ticks[1], ticks[2]);
    }

    @Override
    default BucketSpec spec(byte[] value, List<BucketSpec> specs) {
        return StoredBuckets.spec(value);
    }

    @Override
    default @Nullable BucketSpec origin(byte[] value, long micros) {
        return StoredBuckets.origin(value, micros);
    }

    @Override
    default long perToken(BucketSpec spec) {
        return StoredBuckets.perToken(spec);
    }

    @Override
    default long clockStep(BucketSpec spec) {
        return StoredBuckets.clockStep(spec);
    }
}
