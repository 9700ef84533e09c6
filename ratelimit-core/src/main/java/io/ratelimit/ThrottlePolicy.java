package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A limit as the user wrote it. Immutable: start at {@link #of(String, BucketSpec, String...)}, and change one property
 * at a time by its {@code with…} method.
 *
 * <p>A policy that {@linkplain PolicyThrottler#policy() a throttler returns} also leads back to this throttler, and so a
 * charge does. Two policies with the same properties are equal, whether or not they have a throttler.
 */
public final class ThrottlePolicy {

    /** The effect of a policy's decisions, the strictest first. */
    public enum Mode {
        /** Decide, and deny calls. */
        ENFORCE,
        /** Decide, count and log, but deny no call. */
        SHADOW,
        /** Don't decide. */
        OFF;

        /** Returns the mode that denies fewer calls. */
        public Mode weaker(Mode other) {
            return compareTo(other) >= 0 ? this : other;
        }
    }

    /** The default of {@link #maxKeys()}. */
    public static final int DEFAULT_MAX_KEYS = 100_000;

    /** The default of {@link #queueLimit()}. */
    public static final int DEFAULT_QUEUE_LIMIT = 20;

    /** The longest wait that a bucket can count, and longer than any caller waits. */
    static final Duration LONGEST_WAIT = Duration.ofDays(365);

    private static final Duration LONGEST_LEASE = Duration.ofMinutes(1);

    private final String name;
    private final BucketSpec spec;
    private final Map<String, BucketSpec> tiers;
    private final List<String> key;
    private final boolean ignoreCase;
    private final int maxKeys;
    private final Mode mode;
    private final RetryJitter retryJitter;
    private final Duration maxWait;
    private final int queueLimit;
    private final Duration lease;
    private final @Nullable Shares shares;

    /** The throttler that this version of the policy belongs to; null for a policy that was not added. */
    private final @Nullable PolicyThrottler throttler;

    private ThrottlePolicy(Draft draft) {
        check(
                isName(draft.name),
                "the name of a policy",
                "lower-case letters, digits and dashes, 64 at most, the first one no dash",
                draft.name);
        check(draft.maxKeys >= 1, "max-keys", "at least 1", draft.maxKeys);
        check(draft.queueLimit >= 1, "queue-limit", "at least 1", draft.queueLimit);
        this.name = draft.name;
        this.spec = draft.spec;
        this.tiers = Map.copyOf(draft.tiers);
        this.key = List.copyOf(draft.key);
        this.ignoreCase = draft.ignoreCase;
        this.maxKeys = draft.maxKeys;
        this.mode = draft.mode;
        this.retryJitter = draft.retryJitter;
        this.maxWait = atMostLongest(draft.maxWait);
        this.queueLimit = draft.queueLimit;
        this.lease = validLease(draft.lease);
        this.shares = draft.shares;
        this.throttler = draft.throttler;
        if (shares != null) {
            shares.checkFit(this);
        }
    }

    private static final class Draft {

        private final String name;
        private BucketSpec spec;
        private Map<String, BucketSpec> tiers = Map.of();
        private final List<String> key;
        private boolean ignoreCase = true;
        private int maxKeys = DEFAULT_MAX_KEYS;
        private Mode mode = Mode.ENFORCE;
        private RetryJitter retryJitter = RetryJitter.NONE;
        private Duration maxWait = Duration.ZERO;
        private int queueLimit = DEFAULT_QUEUE_LIMIT;
        private Duration lease = Duration.ZERO;
        private @Nullable Shares shares;
        private @Nullable PolicyThrottler throttler;

        Draft(String name, BucketSpec spec, List<String> key) {
            this.name = name;
            this.spec = spec;
            this.key = key;
        }
    }

    private ThrottlePolicy with(Consumer<Draft> change) {
        Draft draft = new Draft(name, spec, key);
        draft.tiers = tiers;
        draft.ignoreCase = ignoreCase;
        draft.maxKeys = maxKeys;
        draft.mode = mode;
        draft.retryJitter = retryJitter;
        draft.maxWait = maxWait;
        draft.queueLimit = queueLimit;
        draft.lease = lease;
        draft.shares = shares;
        draft.throttler = throttler;
        change.accept(draft);
        return new ThrottlePolicy(draft);
    }

    /**
     * Returns an enforced policy whose keys ignore case and whose calls don't wait.
     *
     * @param name lower-case letters, digits and dashes, 64 characters at most, the first one no dash
     * @param key the names of the key's parts, such as {@code user} and {@code endpoint}; none for a global policy
     * @throws IllegalArgumentException if the name is not of that form
     */
    public static ThrottlePolicy of(String name, BucketSpec spec, String... key) {
        return of(name, spec, List.of(key));
    }

    /**
     * Like {@link #of(String, BucketSpec, String...)}, with the parts of the key as a list.
     *
     * @throws IllegalArgumentException if the name is not of that form
     */
    public static ThrottlePolicy of(String name, BucketSpec spec, List<String> key) {
        return new ThrottlePolicy(new Draft(name, spec, key));
    }

    /** Returns this policy with another {@link #spec()}. */
    public ThrottlePolicy withSpec(BucketSpec spec) {
        return with(draft -> draft.spec = spec);
    }

    /** Returns this policy with other {@link #tiers()}. */
    public ThrottlePolicy withTiers(Map<String, BucketSpec> tiers) {
        return with(draft -> draft.tiers = tiers);
    }

    /** Returns this policy with another {@link #ignoreCase()}. */
    public ThrottlePolicy withIgnoreCase(boolean ignoreCase) {
        return with(draft -> draft.ignoreCase = ignoreCase);
    }

    /**
     * Returns this policy with another {@link #maxKeys()}.
     *
     * @throws IllegalArgumentException if {@code maxKeys} is below 1
     */
    public ThrottlePolicy withMaxKeys(int maxKeys) {
        return with(draft -> draft.maxKeys = maxKeys);
    }

    /** Returns this policy with another {@link #mode()}. */
    public ThrottlePolicy withMode(Mode mode) {
        return with(draft -> draft.mode = mode);
    }

    /** Returns this policy with another {@link #retryJitter()}. */
    public ThrottlePolicy withRetryJitter(RetryJitter retryJitter) {
        return with(draft -> draft.retryJitter = retryJitter);
    }

    /**
     * Returns this policy with another {@link #maxWait()}.
     *
     * @param maxWait the longest wait; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public ThrottlePolicy withMaxWait(Duration maxWait) {
        return with(draft -> draft.maxWait = maxWait);
    }

    /**
     * Returns this policy with another {@link #queueLimit()}.
     *
     * @throws IllegalArgumentException if the limit is below 1
     */
    public ThrottlePolicy withQueueLimit(int queueLimit) {
        return with(draft -> draft.queueLimit = queueLimit);
    }

    /**
     * Returns this policy with another {@link #lease()}.
     *
     * @throws IllegalArgumentException if the lease is negative or above a minute
     */
    public ThrottlePolicy withLease(Duration lease) {
        return with(draft -> draft.lease = lease);
    }

    /**
     * Returns this policy with guaranteed {@link #shares()}.
     *
     * @throws IllegalArgumentException if the policy could deny what it guarantees, or has a property that excludes shares
     */
    public ThrottlePolicy withShares(@Nullable Shares shares) {
        return with(draft -> draft.shares = shares);
    }

    ThrottlePolicy heldBy(PolicyThrottler throttler) {
        return with(draft -> draft.throttler = throttler);
    }

    @Nullable
    PolicyThrottler throttler() {
        return throttler;
    }

    /** Returns the name: lower-case letters, digits and dashes. */
    public String name() {
        return name;
    }

    /** Returns the capacity and the refill rate of the policy's buckets. */
    public BucketSpec spec() {
        return spec;
    }

    /** Returns the specs of the tiers by their names. Each tier has its own buckets. */
    public Map<String, BucketSpec> tiers() {
        return tiers;
    }

    /** Returns whether the policy or one of its tiers limits how many calls are in flight. */
    public boolean limitsInFlight() {
        return spec.inFlight() > 0 || tiers.values().stream().anyMatch(tier -> tier.inFlight() > 0);
    }

    /** Returns the names of the key's parts; empty for a global policy. */
    public List<String> key() {
        return key;
    }

    /** Returns whether one bucket serves all calls. */
    public boolean isGlobal() {
        return key.isEmpty();
    }

    /** Returns whether keys that differ only in case share a bucket. */
    public boolean ignoreCase() {
        return ignoreCase;
    }

    /** Returns the most buckets held at a time; beyond them a new key shares one of 4,096 overflow buckets. */
    public int maxKeys() {
        return maxKeys;
    }

    /** Returns whether the policy's denials count. */
    public Mode mode() {
        return mode;
    }

    /** Returns the random addition to the retry time. */
    public RetryJitter retryJitter() {
        return retryJitter;
    }

    /** Returns the longest time that a call may wait in the policy's queue for its tokens; zero if no call waits. */
    public Duration maxWait() {
        return maxWait;
    }

    /** Returns the maximum number of calls that wait at a time; the next one is denied at once. */
    public int queueLimit() {
        return queueLimit;
    }

    /**
     * Returns the longest time for which this process takes tokens of a remote bucket ahead, to decide calls by itself;
     * zero if each call is decided remotely. Buckets in memory ignore the lease.
     */
    public Duration lease() {
        return lease;
    }

    /** Returns the guaranteed shares of the policy's one bucket; null if it has none. */
    public @Nullable Shares shares() {
        return shares;
    }

    /** Returns the limits of the queue in words: {@code at most 20 wait in the queue, for at most 2s}. */
    public String describeWaiting() {
        return maxWait.isZero()
                ? "no call waits in the queue"
                : "at most " + queueLimit + " wait in the queue, for at most " + Rate.format(maxWait);
    }

    /**
     * Reads a longest wait such as {@code 2s}, {@code 500ms} or {@code PT2S}; a number needs a unit.
     *
     * @throws IllegalArgumentException if the text is not a duration, or is negative or above 365 days; the message
     *     contains a correct example or the bounds
     */
    public static Duration parseMaxWait(String text) {
        Duration maxWait = Rate.parseDuration(text.strip());
        boolean inRange = !maxWait.isNegative() && maxWait.compareTo(LONGEST_WAIT) <= 0;
        check(inRange, "max-wait", "between 0 and 365 days", maxWait);
        return maxWait;
    }

    /**
     * Reads a lease such as {@code 50ms}, {@code 1s} or {@code PT1S}; a number needs a unit.
     *
     * @throws IllegalArgumentException if the text is not a duration, or is negative or above a minute; the message
     *     contains a correct example or the bounds
     */
    public static Duration parseLease(String text) {
        return validLease(Rate.parseDuration(text.strip()));
    }

    private static Duration validLease(Duration lease) {
        boolean inRange = !lease.isNegative() && lease.compareTo(LONGEST_LEASE) <= 0;
        check(inRange, "lease", "between 0 and 1 minute", lease);
        return lease;
    }

    /**
     * Returns the wait, at most 365 days.
     *
     * @throws IllegalArgumentException if the wait is negative
     */
    static Duration atMostLongest(Duration maxWait) {
        check(!maxWait.isNegative(), "max-wait", "zero or more", maxWait);
        return maxWait.compareTo(LONGEST_WAIT) > 0 ? LONGEST_WAIT : maxWait;
    }

    /** Returns whether a policy or a tier may have the name: lower-case letters, digits and dashes, 64 at most, the first one no dash. */
    public static boolean isName(String name) {
        if (name.isEmpty() || name.length() > 64 || name.charAt(0) == '-') {
            return false;
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            if (!(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')) {
                return false;
            }
        }
        return true;
    }

    private List<Object> properties() {
        List<Object> always =
                List.of(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
        return shares == null ? always : List.of(always, shares);
    }

    @Override
    public boolean equals(Object other) {
        return this == other
                || other instanceof ThrottlePolicy policy && properties().equals(policy.properties());
    }

    @Override
    public int hashCode() {
        return properties().hashCode();
    }

    @Override
    public String toString() {
        return "ThrottlePolicy" + properties();
    }
}
