package io.ratelimit.demand;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * The number of sampled keys by the capacity that they needed at the policy's own rate, in bins of an octave, for each of
 * the last 168 hours. Thread-safe.
 */
final class HourlyPeaks {

    /** The hours of a week. */
    static final int KEPT = 168;

    private static final int BINS = 24;

    private final Deque<char[]> hours = new ArrayDeque<>();
    private int ended;

    /** Returns how many hours have ended. */
    synchronized int ended() {
        return ended;
    }

    /** Adds an hour. Each capacity is what one key needed in it, in tokens. */
    synchronized void end(double[] capacities) {
        char[] bins = new char[BINS];
        for (double capacity : capacities) {
            bins[Math.min(Math.getExponent(Math.nextDown(capacity)) + 1, BINS - 1)]++;
        }
        hours.addFirst(bins);
        ended++;
        if (hours.size() > KEPT) {
            hours.removeLast();
        }
    }

    /** Returns the hours, the latest first. */
    synchronized List<Demand.Hour> all() {
        return hours.stream().map(HourlyPeaks::hour).toList();
    }

    private static Demand.Hour hour(char[] bins) {
        int keys = 0;
        for (char count : bins) {
            keys += count;
        }
        return new Demand.Hour(keys, upTo(bins, 0.99 * keys), upTo(bins, keys));
    }

    /** Returns the upper edge of the bin up to which there are this many keys. */
    private static long upTo(char[] bins, double keys) {
        int bin = 0;
        for (int sum = bins[0]; sum < keys && bin < BINS - 1; sum += bins[bin]) {
            bin++;
        }
        return 1L << bin;
    }
}
