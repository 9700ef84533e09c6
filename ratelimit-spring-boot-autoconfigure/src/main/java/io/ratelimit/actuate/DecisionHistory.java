package io.ratelimit.actuate;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * Knows what was decided in each of the last 300 seconds, for each policy. Counts what it hears, and looks at the counts
 * once a second: a call costs some nanoseconds a policy, a policy some 5 KB. Thread-safe.
 *
 * <p>A second at whose end nobody could look is a gap, and so is the one after it: what was counted meanwhile would be a
 * peak that never was.
 */
public final class DecisionHistory implements ThrottleListener, AutoCloseable {

    /** The seconds that are known. */
    public static final int SECONDS = 300;

    private static final long SECOND = 1_000_000_000;
    private static final int GAP = -1;

    private final TimeSource time;
    private final long start;
    private final Map<String, PolicyHistory> policies = new ConcurrentHashMap<>();
    private final boolean[] gaps = new boolean[PolicyHistory.SLOTS];
    private long second;
    private boolean resuming;
    private boolean closed;
    private @Nullable Future<?> next;

    public DecisionHistory(TimeSource time) {
        this.time = time;
        this.start = time.nanoTime();
    }

    /** Begins to look. */
    public synchronized void start() {
        lookAtTheEndOf(second + 1);
    }

    /** Looks no more. */
    @Override
    public synchronized void close() {
        closed = true;
        if (next != null) {
            next.cancel(false);
        }
    }

    @Override
    public void decided(Decision decision) {
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            PolicyHistory policy = policy(answer.policy().name());
            DecisionKind kind = DecisionKind.of(decision, answer);
            if (kind != null) {
                policy.count(kind);
            }
            if (answer.policy().isGlobal()) {
                policy.level(answer.decision().remaining());
            }
        }
    }

    private PolicyHistory policy(String name) {
        PolicyHistory known = policies.get(name);
        return known != null ? known : policies.computeIfAbsent(name, unknown -> new PolicyHistory());
    }

    private void lookAtTheEndOf(long ending) {
        long due = start + ending * SECOND;
        next = time.callAt(due, () -> look(ending, due));
    }

    /** Too early it is only when the clock is closed: then it makes all calls that were still to come. */
    private synchronized void look(long ending, long due) {
        long late = time.nanoTime() - due;
        if (closed || late < 0) {
            return;
        }
        long last = ending + late / SECOND;
        boolean stalled = last > ending;
        for (long each = Math.max(ending, last - SECONDS); each <= last; each++) {
            sample(each, stalled || resuming);
        }
        second = last;
        resuming = stalled;
        lookAtTheEndOf(last + 1);
    }

    private void sample(long each, boolean gap) {
        gaps[PolicyHistory.slot(each)] = gap;
        policies.values().forEach(policy -> policy.sample(each, !gap));
    }

    /** The last second that is over, counted from the start; 0 before the first is. */
    public synchronized long second() {
        return second;
    }

    /**
     * How many decisions of a kind there were in each second after the given one, up to the given last one; -1 where that
     * is not known.
     */
    synchronized int[] counts(String policy, DecisionKind kind, long after, long last) {
        PolicyHistory known = policies.get(policy);
        int[] counts = new int[(int) (last - after)];
        Arrays.setAll(counts, i -> at(known, kind, after + 1 + i));
        return counts;
    }

    private int at(@Nullable PolicyHistory policy, DecisionKind kind, long each) {
        if (gaps[PolicyHistory.slot(each)]) {
            return GAP;
        }
        return policy == null ? 0 : policy.at(kind, each);
    }

    /** The tokens that a global policy's bucket had when it was last asked; negative if it wasn't yet. */
    long level(String policy) {
        PolicyHistory known = policies.get(policy);
        return known == null ? -1 : known.level();
    }
}
