package io.ratelimit.demand;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongFunction;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A uniform sample of the distinct keys: the keys with the smallest hashes. Thread-safe. Readers take no lock; a change
 * may hide a key from readers for a moment, so {@link #enter} searches again under the lock.
 *
 * <p>The threshold is the smallest hash that was left out. While it falls, a key that was left out once stays out. Each
 * followed key is therefore followed from its first request.
 */
final class KeySample {

    private static final long NO_THRESHOLD = Long.MAX_VALUE;

    private final int maxSize;

    /** A hash table with linear probing, at most three quarters full. */
    private final AtomicReferenceArray<@Nullable FollowedKey> table;

    private volatile long threshold = NO_THRESHOLD;
    private volatile double weight = 1;
    private int size;

    KeySample(int maxSize) {
        this.maxSize = maxSize;
        this.table = new AtomicReferenceArray<>(Integer.highestOneBit(maxSize + maxSize / 3 + 1) * 2);
    }

    /** Returns whether the sample has or may take a key with this hash. */
    boolean covers(long hash) {
        return hash < threshold;
    }

    boolean isComplete() {
        return threshold == NO_THRESHOLD;
    }

    /** Returns how many keys each key of the sample represents. */
    double weight() {
        return weight;
    }

    synchronized @Nullable FollowedKey search(long hash) {
        return find(hash);
    }

    /** Returns the followed key of a hash; null if the sample doesn't have it, or moves it now. */
    @Nullable
    FollowedKey find(long hash) {
        int mask = table.length() - 1;
        for (int i = home(hash); ; i = i + 1 & mask) {
            FollowedKey found = table.getAcquire(i);
            if (found == null || found.hash == hash) {
                return found;
            }
        }
    }

    private int home(long hash) {
        return (int) (hash >>> 8) & table.length() - 1;
    }

    /** Returns the followed key of a hash, after letting it in if it belongs to the sample; null if it doesn't. */
    synchronized @Nullable FollowedKey enter(long hash, LongFunction<FollowedKey> create) {
        FollowedKey found = find(hash);
        if (found != null || !covers(hash)) {
            return found;
        }
        FollowedKey entered = create.apply(hash);
        put(entered);
        if (size > maxSize) {
            FollowedKey last = all().stream()
                    .max(Comparator.comparingLong(key -> key.hash))
                    .orElseThrow();
            setThreshold(last.hash);
            remove(last);
        }
        return covers(hash) ? entered : null;
    }

    /**
     * Removes keys. If less than half of the sample is left, twice as many keys as before may enter. A key that could
     * not enter before is followed from its next request on.
     */
    synchronized void removeIf(Predicate<FollowedKey> condition) {
        all().stream().filter(condition).forEach(this::remove);
        if (size < maxSize / 2) {
            setThreshold(threshold > NO_THRESHOLD / 2 ? NO_THRESHOLD : threshold * 2);
        }
    }

    private void setThreshold(long hash) {
        threshold = hash;
        weight = (double) NO_THRESHOLD / hash;
    }

    private void put(FollowedKey key) {
        int i = home(key.hash);
        while (table.get(i) != null) {
            i = i + 1 & table.length() - 1;
        }
        table.setRelease(i, key);
        size++;
    }

    /** Removes a key, and moves later keys into the gap, since a search ends at a gap. */
    private void remove(FollowedKey key) {
        int mask = table.length() - 1;
        int gap = home(key.hash);
        while (table.get(gap) != key) {
            gap = gap + 1 & mask;
        }
        int i = gap;
        for (FollowedKey next = next(++i); next != null; next = next(++i)) {
            if ((i - home(next.hash) & mask) >= (i - gap & mask)) {
                table.setRelease(gap & mask, next);
                gap = i;
            }
        }
        table.setRelease(gap & mask, null);
        size--;
    }

    private @Nullable FollowedKey next(int i) {
        return table.get(i & table.length() - 1);
    }

    synchronized List<FollowedKey> all() {
        List<FollowedKey> all = new ArrayList<>();
        for (int i = 0; i < table.length(); i++) {
            FollowedKey key = table.get(i);
            if (key != null) {
                all.add(key);
            }
        }
        return all;
    }
}
