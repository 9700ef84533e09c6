package io.ratelimit;

import org.jspecify.annotations.Nullable;

/** A bucket whose states are converted to other specs: its latest state, and how long its entry in a map is kept. */
final class ConvertedBucket {
    /*
     * Why few conversions write to the map. If each call of a key has another spec than the call before, each call
     * converts the bucket. A write to the map would cost such a call more than the arithmetic, and only the life of the
     * entry needs it. Without a write, the entry keeps the state of the last write, which is closed by now. This object
     * belongs to all states of the bucket, and leads from the closed state to the latest one.
     *
     * The bucket must be full before the entry expires, and the entry must not live much longer. The last write gave
     * the entry two half-lives of the state that was written. In the first of them, a bucket without debt and with no
     * longer half-life is full in time. If its half-life is at least half as long, the entry lives at most twice as
     * long as it needs to. Any other conversion writes to the map. At 10/1m and 20/1m with a capacity of 100, the
     * half-lives are 602 and 302 seconds. Calls whose specs take turns between the two write about once in ten minutes.
     *
     * Only the latest state is open, and its lock guards this object. A conversion closes the state and publishes the
     * next one under this lock. Before an entry is removed, its latest state is closed, also under its lock. A closed
     * state is never converted. Therefore no open state is left without an entry.
     */

    /** The same for a bucket and its copies. */
    private final Object identity;

    private volatile @Nullable BucketState latest;
    private long halfLife;
    private int writtenAt;

    ConvertedBucket() {
        this(new Object());
    }

    private ConvertedBucket(Object identity) {
        this.identity = identity;
    }

    /** Returns the bucket of a copied state. Tokens that were taken from this bucket come back to it. */
    ConvertedBucket copy() {
        return new ConvertedBucket(identity);
    }

    /** Returns whether this bucket is another one or a copy of it, or both are copies. */
    boolean isSame(@Nullable ConvertedBucket other) {
        return other != null && other.identity == identity;
    }

    /** Returns the state that a state was converted to, perhaps by way of others; the state itself if it wasn't. */
    static BucketState latest(BucketState state) {
        ConvertedBucket bucket = state.backlog().bucket();
        BucketState latest = bucket == null ? null : bucket.latest;
        return latest == null ? state : latest;
    }

    static BucketState close(BucketState state) {
        while (true) {
            BucketState latest = latest(state);
            synchronized (latest) {
                if (latest(state) == latest) {
                    latest.close();
                    return latest;
                }
            }
        }
    }

    /**
     * Returns the state to write to the map in the place of the previous one: the latest state, converted unless it has
     * the spec. The caller holds the lock of the entry, which is neither written nor removed meanwhile.
     *
     * @param before a moment that was read earlier, as for {@link BucketConversion#convert}
     * @param step the present time, in the unit of {@link BucketState#renewedAt}
     * @param halfLife the half-life of the spec; the entry gets two of them at least
     */
    static BucketState written(
            BucketState previous, TickScale scale, long before, TimeSource time, int step, long halfLife) {
        while (true) {
            BucketState latest = latest(previous);
            synchronized (latest) {
                if (!latest.isClosed()) {
                    boolean hasSpec = latest.scale().spec().equals(scale.spec());
                    BucketState state = hasSpec ? latest : BucketConversion.convert(latest, scale, before, time);
                    state.renewedAt = step;
                    ConvertedBucket bucket = state.backlog().bucket();
                    if (bucket != null) {
                        bucket.writtenAt = step;
                        bucket.halfLife = halfLife;
                        bucket.latest = state;
                    }
                    return state;
                }
            }
        }
    }

    /**
     * Converts a state without a write to the map. The parameters are those of {@link #written}.
     *
     * @return null if the state was closed, or the map must be written to
     */
    static @Nullable BucketState convert(
            BucketState state, TickScale scale, long before, TimeSource time, int step, long halfLife) {
        synchronized (state) {
            ConvertedBucket bucket = state.backlog().bucket();
            if (bucket == null || !bucket.outlives(halfLife, step)) {
                return null;
            }
            BucketState next = BucketConversion.withoutDebt(state, scale, before, time);
            if (next != null) {
                next.renewedAt = bucket.writtenAt;
                bucket.latest = next;
            }
            return next;
        }
    }

    private boolean outlives(long otherHalfLife, int step) {
        return otherHalfLife <= halfLife
                && otherHalfLife >= halfLife / 2
                && ExpiringBuckets.isInHalfLife(step - writtenAt, halfLife);
    }
}
