package io.ratelimit.demand;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.stream.DoubleStream;

/** The capacities that the sampled keys needed at the policy's own rate, for each of the last 168 hours. Thread-safe. */
final class HourlyPeaks {

    /** The hours of a week. */
    static final int KEPT = 168;

    private final Deque<Demand.Hour> hours = new ArrayDeque<>();

    /** Adds an hour. Each capacity is what one key needed in it, in tokens. */
    synchronized void end(DoubleStream capacities) {
        double[] sorted = capacities.sorted().toArray();
        int keys = sorted.length;
        hours.addFirst(
                keys == 0
                        ? new Demand.Hour(0, 0, 0)
                        : new Demand.Hour(keys, up(sorted[Demand.rank(0.99, keys) - 1]), up(sorted[keys - 1])));
        if (hours.size() > KEPT) {
            hours.removeLast();
        }
    }

    private static long up(double capacity) {
        return (long) Math.ceil(capacity);
    }

    /** Returns the hours, the latest first. */
    synchronized List<Demand.Hour> all() {
        return List.copyOf(hours);
    }
}
