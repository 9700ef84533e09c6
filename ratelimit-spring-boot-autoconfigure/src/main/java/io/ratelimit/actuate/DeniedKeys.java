package io.ratelimit.actuate;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Knows which keys policies denied most in the last five to ten minutes. Thread-safe.
 *
 * <p>The counts are no more than the truth, and less by about a thousandth of the policy's denials in that time. Whoever
 * has more than that is not lost in a flood of others, whatever their keys. A policy takes the memory of 2,048 keys, of
 * which none is kept longer than 256 characters. An allowed call costs nothing.
 */
public final class DeniedKeys implements ThrottleListener {

    private static final int SHOWN = 10;
    private static final long PERIOD = Duration.ofMinutes(5).toNanos();

    private final TimeSource time;
    private final KeyHash hash = new KeyHash();
    private final Map<String, DeniedTally> enforced = new ConcurrentHashMap<>();
    private final Map<String, DeniedTally> shadow = new ConcurrentHashMap<>();
    private final AtomicBoolean alarm = new AtomicBoolean();

    public DeniedKeys(TimeSource time) {
        this.time = time;
    }

    @Override
    public void decided(Decision decision) {
        if (!decision.allowed()) {
            List<Answer> answers = decision.answers();
            for (int i = 0; i < answers.size(); i++) {
                count(answers.get(i));
            }
        }
    }

    /** A failed backend denies nobody in particular, and without a key there is nobody. */
    private void count(Answer answer) {
        Outcome outcome = answer.decision().outcome();
        String key = answer.charge().key();
        if (outcome != Outcome.ALLOWED
                && outcome != Outcome.BACKEND_FAILED
                && outcome != Outcome.MISSING_KEY
                && !key.isEmpty()) {
            Map<String, DeniedTally> tallies = answer.policy().mode() == Mode.SHADOW ? shadow : enforced;
            String policy = answer.policy().name();
            DeniedTally known = tallies.get(policy);
            DeniedTally tally = known != null ? known : tallies.computeIfAbsent(policy, name -> new DeniedTally());
            tally.count(hash.bounded(key));
            turnInTime();
        }
    }

    /** A denial doesn't read the clock: an alarm does, which is set as long as there is something to forget. */
    private void turnInTime() {
        if (!alarm.get() && alarm.compareAndSet(false, true)) {
            long due = time.nanoTime() + PERIOD;
            time.callAt(due, () -> turn(due));
        }
    }

    /** Too early it is only when the clock is closed: then it makes all calls that were still to come. */
    private void turn(long due) {
        if (time.nanoTime() - due >= 0) {
            tallies().forEach(DeniedTally::turn);
            alarm.set(false);
            if (!tallies().allMatch(DeniedTally::isEmpty)) {
                turnInTime();
            }
        }
    }

    private Stream<DeniedTally> tallies() {
        return Stream.concat(enforced.values().stream(), shadow.values().stream());
    }

    /** The ten keys that a policy denied most, those first that it denied most; empty where there are none. */
    public List<DeniedKey> top(String policy) {
        return Stream.concat(denied(enforced.get(policy), false), denied(shadow.get(policy), true))
                .sorted(Comparator.comparingLong(Denied::count).reversed().thenComparing(Denied::key))
                .limit(SHOWN)
                .map(denied -> new DeniedKey(denied.key, hash.of(denied.key), denied.count, denied.shadow))
                .toList();
    }

    private static Stream<Denied> denied(@Nullable DeniedTally tally, boolean shadow) {
        return tally == null
                ? Stream.empty()
                : tally.counts().entrySet().stream()
                        .map(counted -> new Denied(counted.getKey(), counted.getValue(), shadow));
    }

    private record Denied(String key, long count, boolean shadow) {}

    /** What stands for a key in {@link DeniedKey#hash()}. */
    public String hash(String key) {
        return hash.of(key);
    }
}
