package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.Arrays;
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
     * @param key the text of each part of the key, or of the key of a guaranteed share, none blank; empty for a global policy
     * @param tier one of the policy's tiers, or the name of a share; null for none
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
                List.of(),
                policies.failures(),
                ThrottleListener.NONE);
        if (key.isEmpty() && policy.isGlobal()) {
            return requestKey.charge(policy, 1, null, tier);
        }
        String[] parts = parts(policy, key).toArray(String[]::new);
        if (!shareKey(policy).isEmpty()) {
            Arrays.setAll(parts, i -> Keys.part(parts[i], policy.ignoreCase()));
            return Charge.of(policy, "", 1).guaranteedTo(Keys.join(parts));
        }
        return requestKey.charge(policy, parts, 1, Current.NONE, tier);
    }

    /** Returns the names of the parts of the key that selects a guaranteed share; empty if no keys have shares. */
    private static List<String> shareKey(ThrottlePolicy policy) {
        return policy.shares() == null ? List.of() : policy.shares().key();
    }

    private List<String> parts(ThrottlePolicy policy, List<String> key) {
        try {
            boolean hasEndpoint = policies.get(policy.name()) != null
                    && (policy.key().contains("endpoint") || shareKey(policy).contains("endpoint"));
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
