package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.key.RequestCost;
import java.util.Map;

/**
 * A policy of the configuration, as {@link PolicyReader} has checked and read it.
 *
 * @param properties the properties of the policy
 * @param policy the policy for the core, in the weaker of its own mode and the application's
 * @param overrides the keys and networks with other limits
 */
public record ConfiguredPolicy(Policy properties, ThrottlePolicy policy, OverrideTable overrides) {

    public String name() {
        return policy.name();
    }

    /** Returns the path of one of the policy's properties, such as {@code ratelimit.policies.api.rate}. */
    public String property(String property) {
        return RateLimitProperties.property(name()) + "." + property;
    }

    /** Returns the cost, limited to {@code max-cost}. */
    public RequestCost cost() {
        return cost(properties);
    }

    static RequestCost cost(Policy properties) {
        return properties.maxCost() == null
                ? properties.cost()
                : properties.cost().withMaximum(properties.maxCost());
    }

    /**
     * Checks a change of the running policy. A change that the configuration could not have is rejected.
     *
     * @throws IllegalArgumentException if a bucket of the changed policy could never hold the cost
     */
    void checkChange(ThrottlePolicy changed) {
        long cost = cost().minTokens();
        String name = "'" + changed.name() + "'";
        if (properties.maxCost() != null) {
            checkHolds("the max-cost", properties.maxCost(), changed.spec(), name);
        }
        checkHolds("the cost", cost, changed.spec(), name);
        for (Map.Entry<String, BucketSpec> tier : changed.tiers().entrySet()) {
            checkHolds("the cost", cost, tier.getValue(), "the tier '" + tier.getKey() + "' of " + name);
        }
    }

    private static void checkHolds(String property, long cost, BucketSpec spec, String owner) {
        if (spec.capacity() < cost) {
            throw new IllegalArgumentException("capacity of " + owner + " must be at least " + property
                    + " of the policy, " + cost + ", but was " + spec.capacity());
        }
    }
}
