package io.ratelimit.actuate;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** The denials of the last five to ten minutes by their keys: of two periods, one that goes on and the one before it. */
final class DeniedTally {

    static final Duration PERIOD = Duration.ofMinutes(5);

    private static final FrequentKeys NONE = new FrequentKeys();

    private volatile Periods periods;

    DeniedTally(long now) {
        this.periods = new Periods(now, new FrequentKeys(), NONE);
    }

    void count(String key, long now) {
        at(now).current.count(key);
    }

    /** How often each key was denied at least. */
    Map<String, Long> counts(long now) {
        Periods seen = at(now);
        Map<String, Long> counts = new HashMap<>(seen.current.counts());
        seen.last.addTo(counts);
        return counts;
    }

    private Periods at(long now) {
        Periods seen = periods;
        return now - seen.began < PERIOD.toNanos() ? seen : advance(now);
    }

    private synchronized Periods advance(long now) {
        long past = (now - periods.began) / PERIOD.toNanos();
        if (past > 0) {
            periods = new Periods(
                    periods.began + past * PERIOD.toNanos(), new FrequentKeys(), past == 1 ? periods.current : NONE);
        }
        return periods;
    }

    private record Periods(long began, FrequentKeys current, FrequentKeys last) {}
}
