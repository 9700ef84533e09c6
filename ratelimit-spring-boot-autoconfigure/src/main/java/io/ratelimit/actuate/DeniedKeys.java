package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.Charge.Share;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.Keys;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
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
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

/**
 * A listener that counts the keys denied most in the last five to ten minutes, for each policy. If keys or names have
 * guaranteed shares, these are counted. Thread-safe.
 *
 * <p>A count is never above the real number. It is below by about a thousandth of the policy's denials in that time, at
 * most, so no flood of other keys hides a key with more denials than that. The memory per policy is that of 2,048 keys
 * of at most 256 characters. An allowed call costs nothing.
 */
final class DeniedKeys implements ThrottleListener {

    private static final int MAX_SHOWN = 10;
    private static final int MAX_KEY_LENGTH = 256;
    private static final int PREFIX_LENGTH = 200;
    private static final String HASHED = "shown ";
    private static final long PERIOD_NANOS = Duration.ofMinutes(5).toNanos();
    private static final long REFRESH_NANOS = 1_000_000;

    private final TimeSource time;
    private final List<PolicyTally> policies = new CopyOnWriteArrayList<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();
    private int nextRefreshed;

    DeniedKeys(TimeSource time) {
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
    record DeniedKey(String key, long denied, boolean shadow) {}

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        PolicyTally tally = new PolicyTally(throttler.policy().name());
        policies.add(tally);
        return tally;
    }

    @Override
    public void decided(Decision decision) {}

    /** Returns the key of a charge, or that of its guaranteed share. */
    static String keyOf(Charge charge) {
        Share share = charge.share();
        return share == null ? charge.key() : share.key();
    }

    /** Schedules the end of the period while there are counts to expire, so that a denial doesn't read the clock. */
    private void scheduleNextPeriod() {
        if (!scheduled.get() && scheduled.compareAndSet(false, true)) {
            try {
                long due = time.nanoTime() + PERIOD_NANOS;
                time.maintainAt(due, () -> nextPeriod(due));
            } catch (RuntimeException | Error failed) {
                scheduled.set(false);
                throw failed;
            }
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
        return policies.stream().flatMap(policy -> Stream.of(policy.enforced, policy.shadow));
    }

    /** Returns the ten keys that a policy denied most, in descending order of the denials. */
    List<DeniedKey> top(String policy) {
        return tally(policy).flatMap(tally -> tally.top().stream()).toList();
    }

    /** Returns the keys that a policy denied most, as of their last refresh. */
    List<DeniedKey> latestTop(String policy) {
        return tally(policy).flatMap(tally -> tally.latestTop.stream()).toList();
    }

    private Stream<PolicyTally> tally(String policy) {
        return policies.stream().filter(tally -> tally.policy.equals(policy));
    }

    /**
     * Refreshes the keys denied most. Sorting the keys of a policy that denies thousands takes a fraction of a millisecond.
     * Each refresh therefore spends at most a millisecond, and the next one continues with the next policy.
     */
    synchronized void refreshTops(TimeSource clock) {
        long end = clock.nanoTime() + REFRESH_NANOS;
        int size = policies.size();
        for (int i = 0; i < size && clock.nanoTime() - end < 0; i++) {
            nextRefreshed = (nextRefreshed + 1) % size;
            PolicyTally tally = policies.get(nextRefreshed);
            tally.latestTop = tally.top();
        }
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

    /** The denials of one policy. Thread-safe. */
    private final class PolicyTally implements PolicyListener {

        private final String policy;
        private final Tally enforced = new Tally();
        private final Tally shadow = new Tally();
        private volatile List<DeniedKey> latestTop = List.of();

        PolicyTally(String policy) {
            this.policy = policy;
        }

        private List<DeniedKey> top() {
            return Stream.concat(counts(enforced, false), counts(shadow, true))
                    .sorted(Comparator.comparingLong(DeniedKey::denied)
                            .reversed()
                            .thenComparing(DeniedKey::key))
                    .limit(MAX_SHOWN)
                    .toList();
        }

        private static Stream<DeniedKey> counts(Tally tally, boolean isShadow) {
            return tally.counts().entrySet().stream()
                    .map(entry -> new DeniedKey(entry.getKey(), entry.getValue(), isShadow));
        }

        /** Counts a denial, unless the backend failed or the call has no key. */
        @Override
        public void decided(Decision decision, Answer answer) {
            Outcome outcome = answer.outcome();
            if (outcome != Outcome.ALLOWED && outcome != Outcome.BACKEND_FAILED && outcome != Outcome.MISSING_KEY) {
                count(keyOf(answer.charge()), answer.policy().mode());
            }
        }

        @Override
        public boolean handlesReleased() {
            return false;
        }

        private void count(String key, Mode mode) {
            if (!key.isEmpty()) {
                (mode == Mode.SHADOW ? shadow : enforced).count(bounded(key));
                scheduleNextPeriod();
            }
        }
    }

    /** The denials of a policy by key, in the current period and the previous one. Thread-safe. */
    private static final class Tally {

        private static final int SETS = 64;
        private static final FrequentKeys NONE = new FrequentKeys(SETS);

        private volatile Periods periods = new Periods(NONE, NONE);

        private record Periods(FrequentKeys current, FrequentKeys previous) {}

        void count(String key) {
            FrequentKeys current = periods.current;
            (current == NONE ? begun() : current).count(key);
        }

        /** Returns the counts of the current period, which take memory only from its first denial on. */
        private synchronized FrequentKeys begun() {
            if (periods.current == NONE) {
                periods = new Periods(new FrequentKeys(SETS), periods.previous);
            }
            return periods.current;
        }

        synchronized void nextPeriod() {
            periods = new Periods(NONE, periods.current);
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
