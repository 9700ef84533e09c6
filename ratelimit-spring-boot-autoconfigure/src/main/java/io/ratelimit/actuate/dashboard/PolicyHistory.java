package io.ratelimit.actuate.dashboard;

import io.ratelimit.actuate.dashboard.DecisionHistory.Kind;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/**
 * The decisions of one policy, with a count for each second. Counting is thread-safe; {@link #sample} and {@link #at} must
 * be called by one thread at a time.
 */
final class PolicyHistory {

    /** The seconds that are shown and four more, so that the oldest ones are not overwritten during a read. */
    static final int SLOTS = DecisionHistory.SECONDS + 4;

    private static final Kind[] KINDS = Kind.values();
    private static final long UNKNOWN = -1;

    private final LongAdder[] counts = new LongAdder[KINDS.length];
    private final long[] sampled = new long[KINDS.length];
    private final int[][] seconds = new int[KINDS.length][SLOTS];
    private final AtomicLong lastRemaining = new AtomicLong(UNKNOWN);

    PolicyHistory() {
        for (int kind = 0; kind < KINDS.length; kind++) {
            counts[kind] = new LongAdder();
        }
    }

    void count(Kind kind) {
        counts[kind.ordinal()].increment();
    }

    /** Stores the remaining tokens. Of concurrent calls, any one determines the value. */
    void setLastRemaining(long remaining) {
        lastRemaining.setOpaque(remaining);
    }

    /** Returns the remaining tokens that were stored last; negative if there were none. */
    long lastRemaining() {
        return lastRemaining.getOpaque();
    }

    /** Assigns the counts since the previous sample to a second, or drops them if {@code keep} is false. */
    void sample(long second, boolean keep) {
        for (int kind = 0; kind < KINDS.length; kind++) {
            long total = counts[kind].sum();
            long added = total - sampled[kind];
            sampled[kind] = total;
            seconds[kind][slot(second)] = keep ? (int) Math.min(added, Integer.MAX_VALUE) : 0;
        }
    }

    int at(Kind kind, long second) {
        return seconds[kind.ordinal()][slot(second)];
    }

    static int slot(long second) {
        return (int) (second % SLOTS);
    }
}
