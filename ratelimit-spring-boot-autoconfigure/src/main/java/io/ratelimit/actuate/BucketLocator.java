package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;

/**
 * Locates the bucket for the written form of a key, by the same rules as for requests. Immutable.
 *
 * @param operations the annotated methods, which can have keys of their own; null if there are none
 * @param endpoints the application's endpoints, looked up with a request: they contain the actuator's own
 */
record BucketLocator(
        ConfiguredPolicies policies, @Nullable RateLimitedOperations operations, ObjectProvider<Endpoints> endpoints) {

    /**
     * Returns the charge of a call of one token with this key.
     *
     * @param policy the policy in its present version
     * @param key the text of each key part, none blank; empty for a global policy
     * @param tier one of the policy's tiers; null for none
     * @return null if the policy is off for the key
     * @throws IllegalArgumentException if no call of the policy can have the key; the message doesn't contain the key
     */
    @Nullable
    Charge find(ThrottlePolicy policy, List<String> key, @Nullable String tier) {
        Policy configured = policies.properties(policy.name());
        RequestKey requestKey = new RequestKey(
                configured == null ? List.of() : configured.key(),
                configured == null ? MissingKey.SHARED : configured.onMissingKey(),
                policies.overrides(policy.name()),
                null,
                null,
                policies.failures(),
                ThrottleListener.NONE);
        if (key.isEmpty() && policy.isGlobal()) {
            return requestKey.charge(policy, 1, null, tier);
        }
        String[] parts = parts(policy, key).toArray(String[]::new);
        return requestKey.charge(policy, parts, 1, Current.NONE, tier);
    }

    private List<String> parts(ThrottlePolicy policy, List<String> key) {
        try {
            boolean hasEndpoint =
                    policies.get(policy.name()) != null && policy.key().contains("endpoint");
            return policies.parseKey(
                    policy, key, hasEndpoint ? endpoints.getObject().names() : List.of());
        } catch (IllegalArgumentException unreadable) {
            if (operations != null && operations.givesKeys(policy.name()) && !key.isEmpty()) {
                return key;
            }
            throw unreadable;
        }
    }
}
