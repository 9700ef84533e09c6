package io.ratelimit.actuate;

import java.util.HashMap;
import java.util.Map;

/** The denials of a policy by their keys: of two periods, one that goes on and the one before it. Thread-safe. */
final class DeniedTally {

    private static final FrequentKeys NONE = new FrequentKeys();

    private volatile Periods periods = new Periods(new FrequentKeys(), NONE);

    private record Periods(FrequentKeys current, FrequentKeys last) {}

    void count(String key) {
        periods.current.count(key);
    }

    /** Begins another period, and forgets the one before the last. */
    void turn() {
        Periods before = periods;
        if (!isEmpty()) {
            periods = new Periods(new FrequentKeys(), before.current);
        }
    }

    boolean isEmpty() {
        Periods seen = periods;
        return seen.current.isEmpty() && seen.last.isEmpty();
    }

    /** How often each key was denied at least. */
    Map<String, Long> counts() {
        Periods seen = periods;
        Map<String, Long> counts = new HashMap<>(seen.current.counts());
        seen.last.addTo(counts);
        return counts;
    }
}
