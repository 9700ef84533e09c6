package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What one policy asks of one call: so many tokens from the bucket of this key. Made for each call, since a policy may
 * be {@linkplain Throttlers#reconfigure changed} between two.
 *
 * @param policy who asks
 * @param spec the spec of the bucket: the policy's own, or that of a tier
 * @param key which bucket, as {@link Keys} composes it; the empty text for the bucket of a global policy
 * @param cost the tokens, at least 1; more than the capacity can never be allowed
 * @param maxWait how long the call may wait in line for them, where it is asked to {@link Throttlers#acquire wait}; at
 *     most 365 days
 */
public record Charge(ThrottlePolicy policy, BucketSpec spec, String key, long cost, Duration maxWait) {

    public Charge {
        check(cost >= 1, "cost", "at least 1", cost);
        Waiting.checkWait(maxWait);
    }

    /** A charge that may wait as long as the policy's may. */
    public Charge(ThrottlePolicy policy, BucketSpec spec, String key, long cost) {
        this(policy, spec, key, cost, policy.waiting().maxWait());
    }

    /**
     * A charge without the key that the policy needs: it is never allowed, and the store isn't asked. For policies that
     * deny whom they can't tell.
     */
    public static Charge withoutKey(ThrottlePolicy policy, long cost) {
        return of(policy, Keys.MISSING, cost);
    }

    /** A charge to the policy's own spec. */
    public static Charge of(ThrottlePolicy policy, String key, long cost) {
        return new Charge(policy, policy.spec(), key, cost);
    }

    /** A charge to the bucket that a key has in a tier; to the policy's own spec where it has no such tier. */
    public static Charge of(ThrottlePolicy policy, @Nullable String tier, String key, long cost) {
        BucketSpec spec = tier == null ? null : policy.tiers().get(tier);
        return tier == null || spec == null
                ? of(policy, key, cost)
                : new Charge(policy, spec, Keys.inTier(tier, key), cost);
    }

    /** The same charge of a call that may wait so long. */
    public Charge withMaxWait(Duration maxWait) {
        return new Charge(policy, spec, key, cost, maxWait);
    }

    boolean hasKey() {
        return !key.equals(Keys.MISSING);
    }

    /** Without the key: it may come from a client and has no place in a log. */
    @Override
    public String toString() {
        return "Charge[policy=" + policy.name() + ", cost=" + cost + "]";
    }
}
