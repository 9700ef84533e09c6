package io.ratelimit.demand;

import java.security.SecureRandom;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A counter for any number of keys in the memory of a number of sets of {@value #SLOTS} keys, which keeps the frequent
 * ones. Thread-safe.
 *
 * <p>The hash of a key selects its set. Each instance hashes with other random numbers, so a client can't direct a flood
 * at one set. In a full set, a new key replaces the key with the smallest count and inherits that count as its possible
 * error (Metwally, Agrawal and El Abbadi, <em>Efficient Computation of Frequent and Top-k Elements in Data Streams</em>).
 *
 * <p>The reported count of a key is its count minus the error. It is never above the true number, and below it by at
 * most a {@value #SLOTS}th of the counts of the set. With 64 sets this is about a thousandth of all counts. A key with
 * a larger count is never replaced.
 */
public final class FrequentKeys {

    static final int SLOTS = 16;

    private static final SecureRandom RANDOM = new SecureRandom();

    private final Slots[] sets;
    private final int setShift;
    private final long seed = RANDOM.nextLong();
    private final long factor = RANDOM.nextLong() | 1;

    /** @param sets the number of sets, a power of two, at least 2 */
    public FrequentKeys(int sets) {
        this.sets = Stream.generate(Slots::new).limit(sets).toArray(Slots[]::new);
        this.setShift = Long.SIZE - Integer.numberOfTrailingZeros(sets);
    }

    /** Counts one occurrence of a key, and returns the lower bound of its count. */
    public long count(String key) {
        long hash = hash(key);
        return sets[(int) (hash >>> setShift)].count(key, (int) hash);
    }

    /** Mixes each character with secret numbers, and folds the high bits of the preceding ones into the low bits. */
    private long hash(String key) {
        long hash = seed;
        for (int i = 0; i < key.length(); i++) {
            hash = (hash ^ key.charAt(i)) * factor;
            hash ^= hash >>> 32;
        }
        return hash * factor;
    }

    /** Returns whether no key was counted. */
    public boolean isEmpty() {
        return Stream.of(sets).allMatch(Slots::isEmpty);
    }

    /** Adds the lower bound of each key's count to a map. */
    public void addTo(Map<String, Long> counts) {
        for (Slots set : sets) {
            set.addTo(counts);
        }
    }

    /** Returns the lower bound of each key's count. */
    public Map<String, Long> counts() {
        Map<String, Long> counts = new HashMap<>();
        addTo(counts);
        return counts;
    }

    private static final class Slots {
        private final String[] keys = new String[SLOTS];
        private final int[] hashes = new int[SLOTS];
        private final long[] counts = new long[SLOTS];
        private final long[] errors = new long[SLOTS];
        private int used;

        synchronized long count(String key, int hash) {
            int min = 0;
            for (int i = 0; i < used; i++) {
                if (hashes[i] == hash && keys[i].equals(key)) {
                    counts[i]++;
                    return counts[i] - errors[i];
                }
                if (counts[i] < counts[min]) {
                    min = i;
                }
            }
            if (used < SLOTS) {
                put(used++, key, hash, 0);
            } else {
                put(min, key, hash, counts[min]);
            }
            return 1;
        }

        private void put(int slot, String key, int hash, long error) {
            keys[slot] = key;
            hashes[slot] = hash;
            counts[slot] = error + 1;
            errors[slot] = error;
        }

        synchronized boolean isEmpty() {
            return used == 0;
        }

        synchronized void addTo(Map<String, Long> all) {
            for (int i = 0; i < used; i++) {
                all.merge(keys[i], counts[i] - errors[i], Long::sum);
            }
        }
    }
}
