package io.ratelimit;

import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Values in a map. They expire by the clock that is passed, in microseconds. Thread-safe. */
public final class MapBucketStore extends CompareAndSetBucketStore {

    private record Entry(byte[] value, long expiresMicros) {}

    private final Map<BucketName, Entry> entries = new HashMap<>();
    private final LongSupplier clock;
    private final Duration slack;

    MapBucketStore(LongSupplier epochMicros) {
        this(epochMicros, Duration.ZERO);
    }

    /** @param slack the time for which expired values are kept */
    public MapBucketStore(LongSupplier epochMicros, Duration slack) {
        super(Duration.ofSeconds(10));
        this.clock = epochMicros;
        this.slack = slack;
    }

    @Override
    protected synchronized Reading read(List<BucketName> buckets) {
        long now = clock.getAsLong();
        return new Reading(now, buckets.stream().map(name -> value(name, now)).collect(Collectors.toList()));
    }

    @Override
    protected synchronized boolean compareAndSet(List<Change> changes) {
        long now = clock.getAsLong();
        for (Change change : changes) {
            if (!Arrays.equals(value(change.bucket(), now), change.before())) {
                return false;
            }
        }
        for (Change change : changes) {
            byte[] after = change.after();
            if (after == null) {
                entries.remove(change.bucket());
            } else {
                entries.put(
                        change.bucket(),
                        new Entry(after, now + change.timeToLive().plus(slack).toNanos() / 1_000));
            }
        }
        return true;
    }

    private byte @Nullable [] value(BucketName name, long now) {
        Entry entry = entries.get(name);
        return entry == null || entry.expiresMicros <= now ? null : entry.value;
    }

    /** Returns the value of a charge's bucket, or null. */
    public synchronized byte @Nullable [] value(Charge charge) {
        return value(BucketName.of(charge), clock.getAsLong());
    }

    /** Sets the value of a charge's bucket; null for none. */
    public synchronized void setValue(Charge charge, byte @Nullable [] value) {
        if (value == null) {
            entries.remove(BucketName.of(charge));
        } else {
            entries.put(BucketName.of(charge), new Entry(value, Long.MAX_VALUE));
        }
    }
}
