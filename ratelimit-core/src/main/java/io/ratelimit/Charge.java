package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The tokens that one call needs from one bucket of a policy. Make a new one for each call, since a policy may be
 * {@linkplain PolicyThrottler#reconfigure(BucketSpec) changed} between two calls.
 *
 * @param policy the policy that charges the call
 * @param spec the spec of the bucket: the policy's own, that of a tier or an override, or the call's own
 * @param key the key of the bucket, as {@link Keys} composes it; the empty text for the bucket of a global policy
 * @param cost the tokens, at least 1; more than the capacity can never be allowed
 * @param maxWait the longest time that the call may wait for the tokens, if it is made by {@link Throttlers#acquire};
 *     above 365 days it counts as 365 days. In a policy with shares only a charge with a guaranteed one waits, and at most as
 *     long as the policy allows
 * @param share the part of a limit with guaranteed shares that the call may use; null stands for what all calls share, or
 *     for the whole limit of a policy without shares
 */
public record Charge(
        ThrottlePolicy policy,
        BucketSpec spec,
        String key,
        long cost,
        Duration maxWait,
        @Nullable Share share) {

    /** @throws IllegalArgumentException if the cost is below 1 or the wait is negative */
    public Charge {
        check(cost >= 1, "cost", "at least 1", cost);
        maxWait = ThrottlePolicy.atMostLongest(maxWait);
        Shares shares = policy.shares();
        if (shares != null) {
            share = share == null ? shares.common() : share;
            boolean hasLane = share.guaranteed() != null;
            maxWait = !hasLane ? Duration.ZERO : maxWait.compareTo(policy.maxWait()) > 0 ? policy.maxWait() : maxWait;
        }
    }

    /**
     * Creates a charge without a guaranteed share.
     *
     * @throws IllegalArgumentException if the cost is below 1 or the wait is negative
     */
    public Charge(ThrottlePolicy policy, BucketSpec spec, String key, long cost, Duration maxWait) {
        this(policy, spec, key, cost, maxWait, null);
    }

    /**
     * Creates a charge that may wait as long as the policy allows.
     *
     * @throws IllegalArgumentException if the cost is below 1
     */
    public Charge(ThrottlePolicy policy, BucketSpec spec, String key, long cost) {
        this(policy, spec, key, cost, policy.maxWait());
    }

    /**
     * Returns a charge without the key that the policy needs. {@link Throttlers} denies it and doesn't call the store.
     * For policies that deny calls without a key.
     *
     * @throws IllegalArgumentException if the cost is below 1
     */
    public static Charge withoutKey(ThrottlePolicy policy, long cost) {
        return of(policy, Keys.MISSING, cost);
    }

    /**
     * Returns a charge under the policy's own spec.
     *
     * @throws IllegalArgumentException if the cost is below 1
     */
    public static Charge of(ThrottlePolicy policy, String key, long cost) {
        return new Charge(policy, policy.spec(), key, cost);
    }

    /**
     * Returns a charge to the bucket that a key has in a tier, or a charge under the policy's own spec if the policy
     * has no such tier. If the policy has shares with names, the charge has the share of that name instead.
     *
     * @throws IllegalArgumentException if the cost is below 1
     */
    public static Charge of(ThrottlePolicy policy, @Nullable String tier, String key, long cost) {
        Shares shares = policy.shares();
        if (shares != null && tier != null) {
            return of(policy, key, cost).withShare(shares.ofName(tier, policy.spec()));
        }
        BucketSpec spec = tier == null ? null : policy.tiers().get(tier);
        return tier == null || spec == null
                ? of(policy, key, cost)
                : new Charge(policy, spec, Keys.inTier(tier, key), cost);
    }

    /**
     * Returns this charge with the guaranteed share of a key, as {@link Keys} composes it; this charge if keys of the policy
     * have no shares.
     */
    public Charge guaranteedTo(String key) {
        Shares shares = policy.shares();
        return shares == null || shares.each() == null ? this : withShare(shares.ofKey(key));
    }

    /** Returns this charge with another share. It may wait as long as the policy allows. */
    Charge withShare(Share share) {
        return new Charge(policy, spec, key, cost, policy.maxWait(), share);
    }

    /**
     * Returns this charge with another longest wait.
     *
     * @param maxWait the longest wait; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public Charge withMaxWait(Duration maxWait) {
        return new Charge(policy, spec, key, cost, maxWait, share);
    }

    /**
     * Returns this charge with another cost.
     *
     * @throws IllegalArgumentException if the cost is below 1
     */
    public Charge withCost(long cost) {
        return new Charge(policy, spec, key, cost, maxWait, share);
    }

    /** Returns whether the call may take from the one bucket of a policy without a key only what every call may take. */
    public boolean isCommon() {
        Shares shares = policy.shares();
        return key.isEmpty() && (share == null || shares == null || share.leave() == shares.reserve());
    }

    boolean hasKey() {
        return !key.equals(Keys.MISSING);
    }

    /** Leaves out the key, which may come from a client and must not get into a log. */
    @Override
    public String toString() {
        return "Charge[policy=" + policy.name() + ", cost=" + cost + "]";
    }

    /**
     * The part of a limit with {@linkplain Shares guaranteed shares} that one call may use.
     *
     * @param key the key of the lane; empty without a lane
     * @param guaranteed the spec of the call's lane, which serves the call if too few tokens would be left; null without a lane
     * @param leave the tokens that the pool must have after the call, unless the lane serves it
     * @param lanes the most lanes of the policy at a time
     */
    public record Share(String key, @Nullable BucketSpec guaranteed, long leave, int lanes) {

        Share withoutLane() {
            return new Share("", null, leave, lanes);
        }

        /** Leaves out the key, which may come from a client and must not get into a log. */
        @Override
        public String toString() {
            return "Share[guaranteed=" + guaranteed + ", leave=" + leave + "]";
        }
    }
}
