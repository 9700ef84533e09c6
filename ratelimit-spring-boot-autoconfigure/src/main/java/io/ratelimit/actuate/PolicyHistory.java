package io.ratelimit.actuate;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/**
 * The decisions of one policy, counted as they come and kept by the second. Counting is for many threads; the rest is for
 * one at a time.
 */
final class PolicyHistory {

    /** Some more than are told, so that the oldest stay while they are read. */
    static final int SLOTS = DecisionHistory.SECONDS + 4;

    private static final DecisionKind[] KINDS = DecisionKind.values();
    private static final long NOT_SEEN = -1;

    private final LongAdder[] counts = new LongAdder[KINDS.length];
    private final long[] sampled = new long[KINDS.length];
    private final int[][] seconds = new int[KINDS.length][SLOTS];
    private final AtomicLong level = new AtomicLong(NOT_SEEN);

    PolicyHistory() {
        for (int kind = 0; kind < KINDS.length; kind++) {
            counts[kind] = new LongAdder();
        }
    }

    void count(DecisionKind kind) {
        counts[kind.ordinal()].increment();
    }

    /** Notes the tokens that were left: one of the last to be noted is what is seen. */
    void level(long remaining) {
        level.setOpaque(remaining);
    }

    /** The tokens that were left when they were last noted; negative if they never were. */
    long level() {
        return level.getOpaque();
    }

    /** Keeps what was counted since the last sample for this second; or nothing of it, where that was longer. */
    void sample(long second, boolean keep) {
        for (int kind = 0; kind < KINDS.length; kind++) {
            long now = counts[kind].sum();
            long since = now - sampled[kind];
            sampled[kind] = now;
            seconds[kind][slot(second)] = keep ? (int) Math.min(since, Integer.MAX_VALUE) : 0;
        }
    }

    int at(DecisionKind kind, long second) {
        return seconds[kind.ordinal()][slot(second)];
    }

    static int slot(long second) {
        return (int) (second % SLOTS);
    }
}
