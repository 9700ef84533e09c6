package io.ratelimit.actuate;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Keys;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.FrequentKeys;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A listener that counts the keys denied most in the last five to ten minutes, for each policy. Thread-safe.
 *
 * <p>A count is never above the real number. It is below by about a thousandth of the policy's denials in that time, at
 * most, so no flood of other keys hides a key with more denials than that. The memory per policy is that of 2,048 keys
 * of at most 256 characters. An allowed call costs nothing.
 */
public final class DeniedKeys implements ThrottleListener {

    private static final int MAX_SHOWN = 10;
    private static final int MAX_KEY_LENGTH = 256;
    private static final int PREFIX_LENGTH = 200;
    private static final String HASHED = "shown ";
    private static final long PERIOD_NANOS = Duration.ofMinutes(5).toNanos();

    private final TimeSource time;
    private final Map<String, Tally> enforced = new ConcurrentHashMap<>();
    private final Map<String, Tally> shadow = new ConcurrentHashMap<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();

    /** @param time the clock of the periods that are counted */
    public DeniedKeys(TimeSource time) {
        this.time = time;
    }

    /**
     * A key that a policy denies often.
     *
     * @param key the key as {@link io.ratelimit.Keys} composes it, shortened if it is long; clients choose it, so it is
     *     shown only where the configuration allows that
     * @param denied the lower bound of the number of denials in the last minutes
     * @param shadow whether the policy was in shadow mode for the key, so that no call was rejected
     */
    public record DeniedKey(String key, long denied, boolean shadow) {}

    @Override
    public void decided(Decision decision) {
        if (!decision.allowed()) {
            List<Answer> answers = decision.answers();
            for (int i = 0; i < answers.size(); i++) {
                count(answers.get(i));
            }
        }
    }

    /** Counts a denial, unless the backend failed or the call has no key. */
    private void count(Answer answer) {
        Outcome outcome = answer.outcome();
        String key = answer.charge().key();
        if (outcome != Outcome.ALLOWED
                && outcome != Outcome.BACKEND_FAILED
                && outcome != Outcome.MISSING_KEY
                && !key.isEmpty()) {
            Map<String, Tally> tallies = answer.policy().mode() == Mode.SHADOW ? shadow : enforced;
            String policy = answer.policy().name();
            Tally existing = tallies.get(policy);
            Tally tally = existing != null ? existing : tallies.computeIfAbsent(policy, name -> new Tally());
            tally.count(bounded(key));
            scheduleNextPeriod();
        }
    }

    /** Schedules the end of the period while there are counts to expire, so that a denial doesn't read the clock. */
    private void scheduleNextPeriod() {
        if (!scheduled.get() && scheduled.compareAndSet(false, true)) {
            long due = time.nanoTime() + PERIOD_NANOS;
            time.maintainAt(due, () -> nextPeriod(due));
        }
    }

    /** Ignores a call before its time: a clock makes all pending calls when it is closed. */
    private void nextPeriod(long due) {
        if (time.nanoTime() - due >= 0) {
            tallies().forEach(Tally::nextPeriod);
            scheduled.set(false);
            if (!tallies().allMatch(Tally::isEmpty)) {
                scheduleNextPeriod();
            }
        }
    }

    private Stream<Tally> tallies() {
        return Stream.concat(enforced.values().stream(), shadow.values().stream());
    }

    /** Returns the ten keys that a policy denied most, in descending order of the denials. */
    public List<DeniedKey> top(String policy) {
        return Stream.concat(counts(enforced.get(policy), false), counts(shadow.get(policy), true))
                .sorted(Comparator.comparingLong(DeniedKey::denied).reversed().thenComparing(DeniedKey::key))
                .limit(MAX_SHOWN)
                .toList();
    }

    private static Stream<DeniedKey> counts(@Nullable Tally tally, boolean shadow) {
        return tally == null
                ? Stream.empty()
                : tally.counts().entrySet().stream()
                        .map(entry -> new DeniedKey(entry.getKey(), entry.getValue(), shadow));
    }

    /**
     * Returns a hash that is stable until the application stops, and from which the key can't be guessed. It isn't that of
     * the key's bucket, which shows the keys that share one. A shortened key has the hash of the whole one.
     */
    static String hash(String key) {
        return HexFormat.of().toHexDigits(Keys.hash(HASHED + bounded(key)));
    }

    /** Returns the key if it is short, and otherwise its beginning with a hash of the whole key, which keeps it unique. */
    private static String bounded(String key) {
        if (key.length() <= MAX_KEY_LENGTH) {
            return key;
        }
        int cut = Character.isHighSurrogate(key.charAt(PREFIX_LENGTH - 1)) ? PREFIX_LENGTH - 1 : PREFIX_LENGTH;
        return key.substring(0, cut) + "… " + HexFormat.of().toHexDigits(Keys.hash(key));
    }

    /** The denials of a policy by key, in the current period and the previous one. Thread-safe. */
    private static final class Tally {

        private static final int SETS = 64;
        private static final FrequentKeys NONE = new FrequentKeys(SETS);

        private volatile Periods periods = new Periods(new FrequentKeys(SETS), NONE);

        private record Periods(FrequentKeys current, FrequentKeys previous) {}

        void count(String key) {
            periods.current.count(key);
        }

        void nextPeriod() {
            Periods ended = periods;
            if (!isEmpty()) {
                periods = new Periods(new FrequentKeys(SETS), ended.current);
            }
        }

        boolean isEmpty() {
            Periods seen = periods;
            return seen.current.isEmpty() && seen.previous.isEmpty();
        }

        /** Returns the lower bounds of the counts. */
        Map<String, Long> counts() {
            Periods seen = periods;
            Map<String, Long> counts = new HashMap<>(seen.current.counts());
            seen.previous.addTo(counts);
            return counts;
        }
    }
}
