package io.ratelimit.actuate;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A listener that keeps the number of decisions in each of the last 300 seconds and 60 whole minutes, for each policy.
 * Decisions increment counters, which are sampled once a second. A decision costs some nanoseconds for each policy, and a
 * policy takes about 6 KB. Thread-safe.
 *
 * <p>If a sample is late by a second or more, the missed seconds and the one after them are gaps: the counts of all of
 * them would otherwise appear as one peak. A minute has the sum of its other seconds, and is a gap if all of them are.
 */
final class DecisionHistory implements ThrottleListener, AutoCloseable {

    private static final long SECOND_NANOS = 1_000_000_000;
    private static final int GAP = -1;

    private final TimeSource time;
    private final long start;
    private final List<PolicyHistory> policies = new CopyOnWriteArrayList<>();
    private long second;
    private boolean afterGap;
    private boolean closed;
    private @Nullable Future<?> nextSample;

    public DecisionHistory(TimeSource time) {
        this.time = time;
        this.start = time.nanoTime();
    }

    /** The length of a counted time. */
    enum Step {
        SECOND(1, 300),
        MINUTE(60, 60);

        private final int seconds;
        private final int kept;

        Step(int seconds, int kept) {
            this.seconds = seconds;
            this.kept = kept;
        }

        int seconds() {
            return seconds;
        }

        /** Returns the seconds that are kept in all. */
        int history() {
            return seconds * kept;
        }

        /** Returns the steps that are kept and four more, so that the oldest ones are not overwritten during a read. */
        private int slots() {
            return kept + 4;
        }

        /** Returns the slot of the step that ends with a second. */
        private int slot(long second) {
            return (int) (second / seconds % slots());
        }
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

    public synchronized void start() {
        scheduleSample(second + 1);
    }

    @Override
    public synchronized void close() {
        closed = true;
        if (nextSample != null) {
            nextSample.cancel(false);
        }
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        PolicyHistory history = new PolicyHistory(throttler.policy().name());
        policies.add(history);
        return history;
    }

    @Override
    public void decided(Decision decision) {}

    private @Nullable PolicyHistory history(String policy) {
        for (PolicyHistory history : policies) {
            if (history.policy.equals(policy)) {
                return history;
            }
        }
        return null;
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
        for (long each = Math.max(endingSecond, last - Step.MINUTE.history()); each <= last; each++) {
            keep(each, stalled || afterGap);
        }
        second = last;
        afterGap = stalled;
        scheduleSample(last + 1);
    }

    private void keep(long each, boolean gap) {
        policies.forEach(policy -> policy.sample(each, !gap));
        if (each % Step.MINUTE.seconds() == 0) {
            policies.forEach(policy -> policy.endMinute(each));
        }
    }

    /** Returns the last second of the last complete step, numbered from the start; 0 before the first is complete. */
    synchronized long second(Step step) {
        return second - second % step.seconds();
    }

    /**
     * Returns the decisions of a kind in each step after a second, up to the last second; -1 for a gap.
     *
     * @param after the last second of a step
     * @param last the last second of a complete step
     */
    synchronized int[] counts(String policy, Kind kind, Step step, long after, long last) {
        PolicyHistory counted = history(policy);
        int[] counts = new int[(int) ((last - after) / step.seconds())];
        if (counted != null) {
            Arrays.setAll(counts, i -> counted.at(kind, step, after + (i + 1L) * step.seconds()));
        }
        return counts;
    }

    /** Returns the tokens that the last decision, except for a fallback's, left in the bucket; negative before it. */
    long lastRemaining(String policy) {
        PolicyHistory counted = history(policy);
        return counted == null ? -1 : counted.lastRemaining();
    }

    /**
     * The decisions of one policy, with a count for each second and each minute. Counting is thread-safe;
     * {@link #sample} and {@link #at} must be called by one thread at a time.
     */
    private static final class PolicyHistory implements PolicyListener {

        private static final Kind[] KINDS = Kind.values();
        private static final long UNKNOWN = -1;

        private final String policy;
        private final LongAdder[] counts = new LongAdder[KINDS.length];
        private final long[] sampled = new long[KINDS.length];
        private final int[][] seconds = new int[KINDS.length][Step.SECOND.slots()];
        private final int[][] minutes = new int[KINDS.length][Step.MINUTE.slots()];
        private final AtomicLong lastRemaining = new AtomicLong(UNKNOWN);

        PolicyHistory(String policy) {
            this.policy = policy;
            for (int kind = 0; kind < KINDS.length; kind++) {
                counts[kind] = new LongAdder();
            }
        }

        /**
         * Of concurrent calls, any one determines the remaining tokens. A denial for want of a slot has neither tokens nor a
         * time until the bucket is full, since no bucket was asked. The bucket of a fallback is another one.
         */
        @Override
        public void decided(Decision decision, Answer answer) {
            Kind kind = Kind.of(decision, answer);
            if (kind != null) {
                counts[kind.ordinal()].increment();
            }
            boolean ofBucket = !answer.fallback() && (answer.remaining() > 0 || answer.resetNanos() > 0);
            if (ofBucket && answer.charge().isCommon() && !answer.isGuaranteed()) {
                lastRemaining.setOpaque(answer.remaining());
            }
        }

        @Override
        public boolean handlesReleased() {
            return false;
        }

        long lastRemaining() {
            return lastRemaining.getOpaque();
        }

        /** Assigns the counts since the previous sample to a second, or drops them if {@code keep} is false. */
        void sample(long second, boolean keep) {
            for (int kind = 0; kind < KINDS.length; kind++) {
                long total = counts[kind].sum();
                long added = total - sampled[kind];
                sampled[kind] = total;
                seconds[kind][Step.SECOND.slot(second)] = keep ? (int) Math.min(added, Integer.MAX_VALUE) : GAP;
            }
        }

        /** Adds the counts of the minute that ends with a second. */
        void endMinute(long second) {
            for (int kind = 0; kind < KINDS.length; kind++) {
                long sum = GAP;
                for (int i = 0; i < Step.MINUTE.seconds(); i++) {
                    int count = seconds[kind][Step.SECOND.slot(second - i)];
                    sum = count == GAP ? sum : Math.max(sum, 0) + count;
                }
                minutes[kind][Step.MINUTE.slot(second)] = (int) Math.min(sum, Integer.MAX_VALUE);
            }
        }

        int at(Kind kind, Step step, long second) {
            return (step == Step.SECOND ? seconds : minutes)[kind.ordinal()][step.slot(second)];
        }
    }
}
