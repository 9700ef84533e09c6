package io.ratelimit.benchmarks.bounds;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The calls that a limiter allowed, each with the moments at which it began and ended. Thread-safe. The limiter decided somewhere
 * between the two, so an interval counts a grant only if the whole call lies within it.
 */
final class Grants {

    /** An allowed call. */
    record Grant(long start, long end) {}

    private final List<Grant> grants = new ArrayList<>();

    synchronized void add(List<Grant> more) {
        grants.addAll(more);
    }

    synchronized List<Grant> all() {
        return List.copyOf(grants);
    }

    /**
     * Returns by how many tokens the grants of the worst interval exceed capacity + rate × length. An interval that exceeds it
     * most begins with a call and ends with one, so the others need no look.
     */
    double beyond(Limits limits) {
        List<Grant> byEnd = new ArrayList<>(all());
        byEnd.sort(Comparator.comparingLong(Grant::end));
        double worst = 0;
        for (Grant first : byEnd) {
            double most = limits.capacityAt(first.start);
            long counted = first.start;
            int inside = 0;
            for (Grant last : byEnd) {
                if (last.start >= first.start) {
                    inside++;
                    most += limits.refill(counted, last.end);
                    counted = last.end;
                    worst = Math.max(worst, inside - most);
                }
            }
        }
        return worst;
    }
}
