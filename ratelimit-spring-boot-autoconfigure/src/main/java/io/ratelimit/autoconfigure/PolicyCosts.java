package io.ratelimit.autoconfigure;

import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Refuses costs that no bucket of a policy could ever pay. */
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
}
