package io.ratelimit.remote.lease;

import io.ratelimit.Charge;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.MapBucketStore;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Values in a map, which never expire. */
final class MapPlace implements StoredPlace {

    private final AtomicReference<LongSupplier> clock = new AtomicReference<>(() -> 0);
    private final MapBucketStore store = new MapBucketStore(() -> clock.get().getAsLong(), Duration.ofDays(3_650));

    /** Returns the one store; all instances have one clock. */
    @Override
    public LeasingBucketStore store(LongSupplier micros) {
        clock.set(micros);
        return store;
    }

    @Override
    public byte @Nullable [] value(Charge charge) {
        return store.value(charge);
    }

    @Override
    public void remove(Charge charge) {
        store.setValue(charge, null);
    }
}
