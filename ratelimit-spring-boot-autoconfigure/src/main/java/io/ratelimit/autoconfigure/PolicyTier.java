package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The buckets of those requests of a policy that belong to a tier.
 *
 * @param rate the tokens that come back to them, and how fast
 * @param capacity the most tokens that they hold; by default the tokens of the rate
 */
public record PolicyTier(@Nullable Rate rate, @Nullable Long capacity) {

    /**
     * The specs of a policy's tiers by their names.
     *
     * @param property of the policy
     */
    static Map<String, BucketSpec> read(String property, Policy policy) {
        Map<String, BucketSpec> specs = new HashMap<>();
        policy.tiers().forEach((name, tier) -> specs.put(name, tier.toSpec(property + ".tiers." + name, name, policy)));
        if (policy.tier() != null && specs.isEmpty()) {
            throw new RateLimitConfigurationException(
                    "'" + property + ".tier' says which tier a request belongs to, but there are none.",
                    "Name them, as in '" + property + ".tiers.pro.rate: 6000/1m', or remove 'tier'.",
                    property + ".tier");
        }
        return specs;
    }

    private BucketSpec toSpec(String property, String name, Policy policy) {
        if (!ThrottlePolicy.isName(name)) {
            throw new RateLimitConfigurationException(
                    "'" + name
                            + "' can't be the name of a tier: a name has lower-case letters, digits and dashes, 64 at"
                            + " most, and begins with a letter or a digit.",
                    "Rename the tier, for example to 'pro'. It is compared with roles ignoring case.",
                    property);
        }
        if (rate == null) {
            throw new RateLimitConfigurationException(
                    "The tier '" + name + "' has no rate.",
                    "Say how many tokens come back in which period: '" + property + ".rate: 600/1m', for example.",
                    property);
        }
        return PolicyCosts.spec(rate, capacity, policy, property, "this tier");
    }
}
