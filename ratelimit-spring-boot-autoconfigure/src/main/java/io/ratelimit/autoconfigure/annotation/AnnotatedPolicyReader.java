package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.AnnotatedPolicy;
import io.ratelimit.autoconfigure.ConfiguredPolicies;
import io.ratelimit.autoconfigure.ConfiguredPolicy;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Reads the policies that limit annotated methods. */
final class AnnotatedPolicyReader {

    private final ConfiguredPolicies policies;
    private final Throttlers throttlers;

    AnnotatedPolicyReader(ConfiguredPolicies policies, Throttlers throttlers) {
        this.policies = policies;
        this.throttlers = throttlers;
    }

    /**
     * Returns the policies by their names.
     *
     * @throws InvalidConfigurationPropertyValueException if a policy has a property that is only for requests
     */
    Map<String, AnnotatedPolicy> read() {
        Map<String, AnnotatedPolicy> annotated = new HashMap<>();
        for (ConfiguredPolicy policy : policies.thatApplyTo(AppliesTo.ANNOTATED)) {
            checkHasNoRequests(RateLimitProperties.property(policy.name()), policy.properties());
            annotated.put(
                    policy.name(),
                    new AnnotatedPolicy(
                            throttlers.get(policy.name()),
                            policies.key(policy, throttlers.listener()),
                            policy.cost(),
                            policies.failures()));
        }
        return annotated;
    }

    /** Checks that no property selects requests: it would have no effect. */
    private static void checkHasNoRequests(String property, Policy policy) {
        check(policy.paths().isEmpty(), property + ".paths", policy.paths());
        check(policy.excludePaths().isEmpty(), property + ".exclude-paths", policy.excludePaths());
        check(policy.methods().isEmpty(), property + ".methods", policy.methods());
        check(policy.condition() == null, property + ".condition", policy.condition());
        check(policy.phase() == null, property + ".phase", policy.phase());
        check(policy.refundOn().isEmpty(), property + ".refund-on", policy.refundOn());
    }

    private static void check(boolean absent, String property, @Nullable Object value) {
        if (!absent) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    value,
                    "A policy with 'applies-to: annotated' limits calls of methods, not requests: remove the property, or"
                            + " set 'applies-to: requests'.");
        }
    }
}
