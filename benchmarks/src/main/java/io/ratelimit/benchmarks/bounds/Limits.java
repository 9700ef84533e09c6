package io.ratelimit.benchmarks.bounds;

import java.util.Map;
import java.util.TreeMap;

/** The limit of a run over time: it changes at moments of {@link System#nanoTime}. */
final class Limits {

    private final TreeMap<Long, Limit> since = new TreeMap<>();

    Limits(Limit first) {
        since.put(Long.MIN_VALUE, first);
    }

    /** Changes the limit from a moment on. */
    void change(long nanos, Limit limit) {
        since.put(nanos, limit);
    }

    int capacityAt(long nanos) {
        return since.floorEntry(nanos).getValue().tokens();
    }

    /** Returns the tokens that refill between two moments. */
    double refill(long from, long to) {
        double tokens = 0;
        long end = to;
        for (Map.Entry<Long, Limit> part :
                since.headMap(to, true).descendingMap().entrySet()) {
            long start = Math.max(from, part.getKey());
            tokens += Math.max(0, end - start) * part.getValue().perNano();
            end = start;
        }
        return tokens;
    }
}
