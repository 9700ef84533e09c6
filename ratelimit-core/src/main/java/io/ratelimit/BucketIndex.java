package io.ratelimit;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/** The states of buckets by the hashes of their keys: a way past the map. Thread-safe and lock-free. */
final class BucketIndex {
    /*
     * Why a second way to a bucket. With many keys a look-up costs what it has to fetch from memory. In the map that is
     * the table, a node, the text of the key, its bytes, Caffeine's node and the state: six places, one after the other.
     * A hash of 64 bits in the state itself needs only the table and the state.
     *
     * Why the index may be wrong. The map owns the buckets, and the index only remembers where they were. It may forget
     * a state, or contain one twice: a look-up that finds nothing goes to the map. It may contain a state that the map
     * has replaced, evicted or reset: such a state is closed, and a closed state is never returned. So nothing has to be
     * removed in time, and a slot is written without a lock, even while the index grows.
     *
     * Why the text isn't compared. The hash is SipHash under a random key, so a client can't construct two keys with one
     * hash. Among a million keys two have the same hash by chance in one of 37 million processes. These two keys would
     * share a bucket, as keys at max-keys do.
     */

    /** The slots that a state can be in. A look-up reads one line of the cache, and rarely a second one. */
    private static final int WINDOW = 8;

    private static final int MIN_SLOTS = 64;
    private static final int MAX_SLOTS = 1 << 28;

    private volatile AtomicReferenceArray<@Nullable BucketState> slots = new AtomicReferenceArray<>(MIN_SLOTS);

    /** Returns the open state of a key's hash; null if the index doesn't contain one. */
    @Nullable
    BucketState get(long hash) {
        AtomicReferenceArray<@Nullable BucketState> table = slots;
        for (int i = 0; i < WINDOW; i++) {
            BucketState state = table.getAcquire(slot(table, hash, i));
            if (state == null || state.keyHash == hash && !state.isClosed()) {
                return state;
            }
        }
        return null;
    }

    /**
     * Adds the state of a key, perhaps in the place of another key's.
     *
     * @param count the states that the index should have room for
     */
    void put(long hash, BucketState state, long count) {
        if (isSmall(count)) {
            grow(count);
        }
        state.keyHash = hash;
        put(slots, state);
    }

    private static void put(AtomicReferenceArray<@Nullable BucketState> table, BucketState state) {
        long hash = state.keyHash;
        for (int i = 0; i < WINDOW; i++) {
            BucketState other = table.getAcquire(slot(table, hash, i));
            if (other == null || other.keyHash == hash || other.isClosed()) {
                table.setRelease(slot(table, hash, i), state);
                return;
            }
        }
        table.setRelease(slot(table, hash, 0), state);
    }

    private boolean isSmall(long count) {
        return slots.length() < MAX_SLOTS && count > slots.length() / 2;
    }

    private synchronized void grow(long count) {
        if (isSmall(count)) {
            AtomicReferenceArray<@Nullable BucketState> grown = new AtomicReferenceArray<>(2 * slots.length());
            for (int i = 0; i < slots.length(); i++) {
                BucketState state = slots.get(i);
                if (state != null && !state.isClosed()) {
                    put(grown, state);
                }
            }
            slots = grown;
        }
    }

    /** Removes a closed state, so that the index doesn't keep it in memory. */
    void remove(BucketState state) {
        AtomicReferenceArray<@Nullable BucketState> table = slots;
        for (int i = 0; i < WINDOW; i++) {
            table.compareAndSet(slot(table, state.keyHash, i), state, null);
        }
    }

    private static int slot(AtomicReferenceArray<?> table, long hash, int i) {
        return ((int) hash + i) & (table.length() - 1);
    }
}
