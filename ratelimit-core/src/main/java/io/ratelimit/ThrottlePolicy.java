package io.ratelimit;

import static io.ratelimit.Check.check;

import java.util.List;
import java.util.Map;

/**
 * What a user wrote about one limit.
 *
 * @param name of lower-case letters, digits and dashes, 64 characters at most
 * @param spec the size and the refill rate of its buckets
 * @param tiers other specs by the name of the tier that a call may belong to, each with buckets of its own
 * @param key the names of the parts that a bucket's key has, such as {@code user} and {@code endpoint}; empty for a
 *     global policy, which has one bucket for all calls
 * @param ignoreCase whether keys that differ in case alone share a bucket
 * @param maxKeys the most buckets held at a time; beyond it a new key shares one of 4,096 overflow buckets
 * @param mode whether its refusals count
 * @param retryJitter the random addition to the retry time
 * @param waiting whether its calls may wait in line for their tokens
 */
public record ThrottlePolicy(
        String name,
        BucketSpec spec,
        Map<String, BucketSpec> tiers,
        List<String> key,
        boolean ignoreCase,
        int maxKeys,
        Mode mode,
        RetryJitter retryJitter,
        Waiting waiting) {

    /** How much a policy's decisions count, the strictest first. */
    public enum Mode {
        /** Decide, and refuse what is denied. */
        ENFORCE,
        /** Decide, count and log, but refuse nothing. */
        SHADOW,
        /** Don't decide. */
        OFF;

        /** The one that refuses less. */
        public Mode weaker(Mode other) {
            return compareTo(other) >= 0 ? this : other;
        }
    }

    /** The default of {@link #maxKeys()}. */
    public static final int DEFAULT_MAX_KEYS = 100_000;

    public ThrottlePolicy {
        check(isName(name), "the name of a policy", "lower-case letters, digits and dashes, 64 at most", name);
        check(maxKeys >= 1, "max-keys", "at least 1", maxKeys);
        tiers = Map.copyOf(tiers);
        key = List.copyOf(key);
    }

    /** An enforced policy; its keys ignore case. */
    public static ThrottlePolicy of(String name, BucketSpec spec, String... key) {
        return of(name, spec, List.of(key));
    }

    /** An enforced policy; its keys ignore case. */
    public static ThrottlePolicy of(String name, BucketSpec spec, List<String> key) {
        return new ThrottlePolicy(
                name, spec, Map.of(), key, true, DEFAULT_MAX_KEYS, Mode.ENFORCE, RetryJitter.NONE, Waiting.NONE);
    }

    public ThrottlePolicy withSpec(BucketSpec spec) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    public ThrottlePolicy withTiers(Map<String, BucketSpec> tiers) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    public ThrottlePolicy withIgnoreCase(boolean ignoreCase) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    public ThrottlePolicy withMaxKeys(int maxKeys) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    public ThrottlePolicy withMode(Mode mode) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    public ThrottlePolicy withRetryJitter(RetryJitter retryJitter) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    public ThrottlePolicy withWaiting(Waiting waiting) {
        return new ThrottlePolicy(name, spec, tiers, key, ignoreCase, maxKeys, mode, retryJitter, waiting);
    }

    /** Whether one bucket serves all calls. */
    public boolean isGlobal() {
        return key.isEmpty();
    }

    /** Whether a policy, or a tier of one, may have the name: lower-case letters, digits and dashes, 64 at most. */
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
}
