package io.ratelimit.demand;

import java.util.Arrays;
import java.util.List;

/**
 * The maxima of the followed keys in a week that has ended: the capacity that each key needed at each rate. Immutable.
 *
 * <p>A capacity takes 16 bits, and is rounded up to one of 1,024 steps in each octave. Whole tokens up to 2,048 are exact.
 * A larger capacity is at most 0.1 % too large, and none is too small.
 */
final class PastPeaks {

    /** The bits of a double that are rounded away. */
    private static final int ROUNDED_BITS = 42;

    /** The steps below one token. */
    private static final long FIRST_STEP = Double.doubleToRawLongBits(1) - 1 >> ROUNDED_BITS;

    private final int rates;
    private final long[] hashes;

    /** The steps of each key at each rate, in the order of the hashes; 0 stands for no request. */
    private final char[] steps;

    /** Takes the maxima of keys, which begin their next week. */
    PastPeaks(RateGrid grid, List<FollowedKey> keys) {
        this.rates = grid.size();
        this.hashes =
                keys.stream().mapToLong(key -> key.hash).sorted().distinct().toArray();
        this.steps = new char[hashes.length * rates];
        for (FollowedKey key : keys) {
            int first = Arrays.binarySearch(hashes, key.hash) * rates;
            double[] peaks = key.endWeek();
            for (int i = 0; i < rates; i++) {
                steps[first + i] = (char) Math.max(steps[first + i], step(peaks[i] / grid.perToken()));
            }
        }
    }

    private static long step(double capacity) {
        long step = (Double.doubleToRawLongBits(capacity) - 1 >> ROUNDED_BITS) - FIRST_STEP + 1;
        return Math.min(Math.max(step, 0), Character.MAX_VALUE);
    }

    private static double capacity(char step) {
        return step == 0 ? 0 : Double.longBitsToDouble(step + FIRST_STEP << ROUNDED_BITS);
    }

    /** Raises the capacities that a key needed since then to the past ones. */
    void raise(long hash, double[] capacities) {
        int key = Arrays.binarySearch(hashes, hash);
        for (int i = 0; i < rates && key >= 0; i++) {
            capacities[i] = Math.max(capacities[i], capacity(steps[key * rates + i]));
        }
    }
}
