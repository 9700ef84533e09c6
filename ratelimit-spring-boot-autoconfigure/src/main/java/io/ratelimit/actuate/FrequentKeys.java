package io.ratelimit.actuate;

import java.security.SecureRandom;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Counts keys, of which there may be any number, in the memory of {@value #SETS} × {@value #SLOTS}: the frequent ones
 * are kept. Thread-safe.
 *
 * <p>A key belongs to one set by its hash, which is another in each instance, so that nobody can aim a flood at a set. In
 * a set that is full, a new key takes the place of the one with the least count, and inherits that count as its possible
 * error (Metwally, Agrawal and El Abbadi, <em>Efficient Computation of Frequent and Top-k Elements in Data Streams</em>).
 * What it says of a key is its count without the error: never more than the truth, and less by at most a
 * {@value #SLOTS}th of what its set counted, so by about a thousandth of the whole. A key with more than that is kept
 * whatever the others do.
 */
final class FrequentKeys {

    static final int SETS = 64;
    static final int SLOTS = 16;

    private static final int SET_SHIFT = Long.SIZE - Integer.numberOfTrailingZeros(SETS);
    private static final SecureRandom RANDOM = new SecureRandom();

    private final Slots[] sets = new Slots[SETS];
    private final long seed = RANDOM.nextLong();
    private final long factor = RANDOM.nextLong() | 1;

    FrequentKeys() {
        for (int i = 0; i < SETS; i++) {
            sets[i] = new Slots();
        }
    }

    void count(String key) {
        long hash = hash(key);
        sets[(int) (hash >>> SET_SHIFT)].count(key, (int) hash);
    }

    /** Each character is mixed with what nobody knows, and what came before it is folded into the low bits. */
    private long hash(String key) {
        long hash = seed;
        for (int i = 0; i < key.length(); i++) {
            hash = (hash ^ key.charAt(i)) * factor;
            hash ^= hash >>> 32;
        }
        return hash * factor;
    }

    boolean isEmpty() {
        return Stream.of(sets).allMatch(Slots::isEmpty);
    }

    /** Adds how often each key was counted at least. */
    void addTo(Map<String, Long> counts) {
        for (Slots set : sets) {
            set.addTo(counts);
        }
    }

    /** How often each key was counted at least. */
    Map<String, Long> counts() {
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

        synchronized void count(String key, int hash) {
            int least = 0;
            for (int i = 0; i < used; i++) {
                if (hashes[i] == hash && keys[i].equals(key)) {
                    counts[i]++;
                    return;
                }
                if (counts[i] < counts[least]) {
                    least = i;
                }
            }
            if (used < SLOTS) {
                put(used++, key, hash, 0);
            } else {
                put(least, key, hash, counts[least]);
            }
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
