package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * A limit as the user wrote it. Immutable: start at {@link #of(String, BucketSpec, String...)}, and change one property
 * at a time by its {@code with…} method.
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

    private ThrottlePolicy(
            String name,
            BucketSpec spec,
            Map<String, BucketSpec> tiers,
            List<String> key,
            boolean ignoreCase,
            int maxKeys,
            Mode mode,
            RetryJitter retryJitter,
            Duration maxWait,
            int queueLimit,
            Duration lease) {
        check(isName(name), "the name of a policy", "lower-case letters, digits and dashes, 64 at most", name);
        check(maxKeys >= 1, "max-keys", "at least 1", maxKeys);
        check(queueLimit >= 1, "queue-limit", "at least 1", queueLimit);
        this.name = name;
        this.spec = spec;
        this.tiers = Map.copyOf(tiers);
        this.key = List.copyOf(key);
        this.ignoreCase = ignoreCase;
        this.maxKeys = maxKeys;
        this.mode = mode;
        this.retryJitter = retryJitter;
        this.maxWait = atMostLongest(maxWait);
        this.queueLimit = queueLimit;
        this.lease = validLease(lease);
    }

    /**
     * Returns an enforced policy whose keys ignore case and whose calls don't wait.
     *
     * @param name lower-case letters, digits and dashes, 64 characters at most
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
        return new ThrottlePolicy(
                name,
                spec,
                Map.of(),
                key,
                true,
                DEFAULT_MAX_KEYS,
                Mode.ENFORCE,
                RetryJitter.NONE,
                Duration.ZERO,
                DEFAULT_QUEUE_LIMIT,
                Duration.ZERO);
    }

    /** Returns this policy with another {@link #spec()}. */
    public ThrottlePolicy withSpec(BucketSpec spec) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /** Returns this policy with other {@link #tiers()}. */
    public ThrottlePolicy withTiers(Map<String, BucketSpec> tiers) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /** Returns this policy with another {@link #ignoreCase()}. */
    public ThrottlePolicy withIgnoreCase(boolean ignoreCase) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /**
     * Returns this policy with another {@link #maxKeys()}.
     *
     * @throws IllegalArgumentException if {@code maxKeys} is below 1
     */
    public ThrottlePolicy withMaxKeys(int maxKeys) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /** Returns this policy with another {@link #mode()}. */
    public ThrottlePolicy withMode(Mode mode) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /** Returns this policy with another {@link #retryJitter()}. */
    public ThrottlePolicy withRetryJitter(RetryJitter retryJitter) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /**
     * Returns this policy with another {@link #maxWait()}.
     *
     * @param maxWait the longest wait; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public ThrottlePolicy withMaxWait(Duration maxWait) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /**
     * Returns this policy with another {@link #queueLimit()}.
     *
     * @throws IllegalArgumentException if the limit is below 1
     */
    public ThrottlePolicy withQueueLimit(int queueLimit) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
    }

    /**
     * Returns this policy with another {@link #lease()}.
     *
     * @throws IllegalArgumentException if the lease is negative or above a minute
     */
    public ThrottlePolicy withLease(Duration lease) {
        return new ThrottlePolicy(
                name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
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
        check(inRange, "max-wait", "between 0 and 365 days", Rate.format(maxWait));
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
        if (!inRange) {
            check(false, "lease", "between 0 and 1 minute", Rate.format(lease));
        }
        return lease;
    }

    /**
     * Returns the wait, at most 365 days.
     *
     * @throws IllegalArgumentException if the wait is negative
     */
    static Duration atMostLongest(Duration maxWait) {
        if (maxWait.isNegative()) {
            check(false, "max-wait", "zero or more", Rate.format(maxWait));
        }
        return maxWait.compareTo(LONGEST_WAIT) > 0 ? LONGEST_WAIT : maxWait;
    }

    /** Returns whether a policy or a tier may have the name: lower-case letters, digits and dashes, 64 at most. */
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
        return List.of(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, maxWait, queueLimit, lease);
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
