package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Refuses buckets of a policy that could never pay its cost. */
final class PolicyCosts {

    private PolicyCosts() {}

    static void check(String name, Policy policy, long capacity) {
        Long most = policy.maxCost();
        Long cost = policy.cost().constant();
        if (most != null && (most < 1 || most > capacity)) {
            throw new InvalidConfigurationPropertyValueException(
                    RateLimitProperties.property(name) + ".max-cost",
                    most,
                    "max-cost must be between 1 and the capacity of '" + name + "', " + capacity + ", but was " + most);
        }
        if (most == null && cost != null && cost > capacity) {
            throw new InvalidConfigurationPropertyValueException(
                    RateLimitProperties.property(name) + ".cost",
                    cost,
                    "cost must be at most the capacity of '" + name + "', " + capacity + ", but was " + cost
                            + ": no request could ever be allowed");
        }
    }

    /** Refuses a change of a running policy after which the start would refuse it. */
    static void check(Policy properties, ThrottlePolicy changed) {
        Long most = properties.maxCost();
        long cost = properties.cutCost().least();
        checkPays("the max-cost", most == null ? 1 : most, changed.spec(), "'" + changed.name() + "'");
        checkPays("the cost", cost, changed.spec(), "'" + changed.name() + "'");
        for (Map.Entry<String, BucketSpec> tier : changed.tiers().entrySet()) {
            checkPays(
                    "the cost", cost, tier.getValue(), "the tier '" + tier.getKey() + "' of '" + changed.name() + "'");
        }
    }

    private static void checkPays(String what, long cost, BucketSpec spec, String whose) {
        if (spec.capacity() < cost) {
            throw new IllegalArgumentException("capacity of " + whose + " must be at least " + what + " of the policy, "
                    + cost + ", but was " + spec.capacity());
        }
    }

    /**
     * The buckets that some requests of a policy have in place of its own.
     *
     * @param at the property that has the rate and the capacity
     * @param whose they are, as in "this tier"
     */
    static BucketSpec spec(Rate rate, @Nullable Long capacity, Policy policy, String at, String whose) {
        try {
            BucketSpec spec = new BucketSpec(rate, capacity == null ? rate.tokens() : capacity, policy.refill());
            long cost = policy.cutCost().least();
            if (spec.capacity() < cost) {
                throw new IllegalArgumentException("capacity must be at least the cost of the policy, " + cost
                        + ", but was " + spec.capacity() + ": no request of " + whose + " could ever be allowed");
            }
            return spec;
        } catch (IllegalArgumentException refused) {
            throw new InvalidConfigurationPropertyValueException(
                    at + (capacity == null ? ".rate" : ".capacity"),
                    capacity == null ? rate : capacity,
                    refused.getMessage(),
                    refused);
        }
    }
}
