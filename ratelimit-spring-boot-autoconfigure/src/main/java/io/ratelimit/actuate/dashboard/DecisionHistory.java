package io.ratelimit.actuate.dashboard;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A listener that keeps the number of decisions in each of the last 300 seconds, for each policy. Decisions increment
 * counters, which are sampled once a second. A decision costs some nanoseconds for each policy, and a policy takes about
 * 5 KB. Thread-safe.
 *
 * <p>If a sample is late by a second or more, the missed seconds and the one after them are gaps: the counts of all of
 * them would otherwise appear as one peak.
 */
public final class DecisionHistory implements ThrottleListener, AutoCloseable {

    static final int SECONDS = 300;

    private static final long SECOND_NANOS = 1_000_000_000;
    private static final int GAP = -1;

    private final TimeSource time;
    private final long start;
    private final Map<String, PolicyHistory> policies = new ConcurrentHashMap<>();
    private final boolean[] gaps = new boolean[PolicyHistory.SLOTS];
    private long second;
    private boolean afterGap;
    private boolean closed;
    private @Nullable Future<?> nextSample;

    /** @param time the clock of the seconds that are counted */
    public DecisionHistory(TimeSource time) {
        this.time = time;
        this.start = time.nanoTime();
    }

    /** The kinds of decisions, from the view of one of the policies. */
    enum Kind {
        /** The decision allowed the call; for a shadow policy, it would have. */
        ALLOWED,
        /** The policy denied the call, alone or with others. */
        DENIED,
        /** The policy is in shadow mode and would have denied the call. */
        SHADOW_DENIED,
        /** The backend of the bucket failed, and the policy's rule for that denied the call. */
        FAILED;

        /**
         * Returns the kind for the policy of an answer. It is null if the policy would have allowed a call that another
         * one denied, or if it is in shadow mode and its backend failed.
         */
        static @Nullable Kind of(Decision decision, Answer answer) {
            if (answer.allowed()) {
                return decision.allowed() ? ALLOWED : null;
            }
            boolean failed = answer.outcome() == Outcome.BACKEND_FAILED;
            if (answer.policy().mode() == Mode.SHADOW) {
                return failed ? null : SHADOW_DENIED;
            }
            return failed ? FAILED : DENIED;
        }
    }

    /** Starts sampling. */
    public synchronized void start() {
        scheduleSample(second + 1);
    }

    /** Stops sampling. */
    @Override
    public synchronized void close() {
        closed = true;
        if (nextSample != null) {
            nextSample.cancel(false);
        }
    }

    @Override
    public void decided(Decision decision) {
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            PolicyHistory policy = policy(answer.policy().name());
            Kind kind = Kind.of(decision, answer);
            if (kind != null) {
                policy.count(kind);
            }
            if (answer.policy().isGlobal()) {
                policy.setLastRemaining(answer.remaining());
            }
        }
    }

    private PolicyHistory policy(String name) {
        PolicyHistory existing = policies.get(name);
        return existing != null ? existing : policies.computeIfAbsent(name, key -> new PolicyHistory());
    }

    private void scheduleSample(long endingSecond) {
        long due = start + endingSecond * SECOND_NANOS;
        nextSample = time.maintainAt(due, () -> sample(endingSecond, due));
    }

    /** Ignores a call before its time: a clock makes all pending calls when it is closed. */
    private synchronized void sample(long endingSecond, long due) {
        long late = time.nanoTime() - due;
        if (closed || late < 0) {
            return;
        }
        long last = endingSecond + late / SECOND_NANOS;
        boolean stalled = last > endingSecond;
        for (long each = Math.max(endingSecond, last - SECONDS); each <= last; each++) {
            keep(each, stalled || afterGap);
        }
        second = last;
        afterGap = stalled;
        scheduleSample(last + 1);
    }

    private void keep(long each, boolean gap) {
        gaps[PolicyHistory.slot(each)] = gap;
        policies.values().forEach(policy -> policy.sample(each, !gap));
    }

    /** Returns the last complete second, numbered from the start; 0 before the first is complete. */
    synchronized long second() {
        return second;
    }

    /** Returns the decisions of a kind in each second after the first argument, up to the last one; -1 for a gap. */
    synchronized int[] counts(String policy, Kind kind, long after, long last) {
        PolicyHistory counted = policies.get(policy);
        int[] counts = new int[(int) (last - after)];
        Arrays.setAll(counts, i -> at(counted, kind, after + 1 + i));
        return counts;
    }

    private int at(@Nullable PolicyHistory policy, Kind kind, long each) {
        if (gaps[PolicyHistory.slot(each)]) {
            return GAP;
        }
        return policy == null ? 0 : policy.at(kind, each);
    }

    /** Returns the tokens that the last decision left in the bucket of a global policy; negative before the first. */
    long lastRemaining(String policy) {
        PolicyHistory counted = policies.get(policy);
        return counted == null ? -1 : counted.lastRemaining();
    }

    /**
     * The decisions of one policy, with a count for each second. Counting is thread-safe; {@link #sample} and {@link #at} must
     * be called by one thread at a time.
     */
    static final class PolicyHistory {

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
}
