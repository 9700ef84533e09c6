package io.ratelimit.actuate;

import io.ratelimit.Charge;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.KeyTexts;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Locates the bucket for the written form of a key, by the same rules as for requests. Immutable. */
final class BucketLocator {

    private final Map<String, RequestKey> requestKeys = new HashMap<>();
    private final Map<String, KeyTexts> keyTexts = new HashMap<>();
    private final Supplier<Collection<String>> endpoints;
    private final @Nullable RateLimitedOperations operations;
    private final RequestKey codeKey;

    /**
     * @param operations the annotated methods, which can have keys of their own; null if there are none
     * @param endpoints the names of the application's endpoints
     */
    BucketLocator(
            RateLimitProperties properties,
            ConfiguredPolicies policies,
            @Nullable RateLimitedOperations operations,
            Supplier<Collection<String>> endpoints) {
        FailureListener failures = policies.failures();
        this.operations = operations;
        this.endpoints = endpoints;
        this.codeKey = new RequestKey(List.of(), MissingKey.SHARED, failures, ThrottleListener.NONE);
        int ipv6Prefix = properties.clientIp().ipv6Prefix();
        properties.policies().forEach((name, policy) -> {
            requestKeys.put(name, requestKey(policy, policies.overrides(name), failures));
            keyTexts.put(name, new KeyTexts(policy.key(), policy.ignoreCase(), ipv6Prefix));
        });
    }

    private static RequestKey requestKey(Policy policy, OverrideTable overrides, FailureListener failures) {
        return new RequestKey(
                policy.key(), policy.onMissingKey(), overrides, null, null, failures, ThrottleListener.NONE);
    }

    /** Returns the number of keys and networks of a policy that have an override. */
    int overrides(String policy) {
        RequestKey key = requestKeys.get(policy);
        return key == null ? 0 : key.overrides().size();
    }

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
        RequestKey requestKey = requestKeys.getOrDefault(policy.name(), codeKey);
        if (key.isEmpty() && policy.isGlobal()) {
            return requestKey.charge(policy, 1, null, tier);
        }
        String[] parts = parts(policy, key).toArray(String[]::new);
        return requestKey.charge(policy, parts, 1, Current.NONE, tier);
    }

    private List<String> parts(ThrottlePolicy policy, List<String> key) {
        boolean annotationKey = operations != null && operations.givesKeys(policy.name());
        KeyTexts configured = keyTexts.get(policy.name());
        try {
            return configured == null ? codeParts(policy, key, annotationKey) : configured.parse(key, endpoints);
        } catch (IllegalArgumentException unreadable) {
            if (annotationKey && !key.isEmpty()) {
                return key;
            }
            throw unreadable;
        }
    }

    /** Checks only the number of parts, for a policy that code has added or an annotation defines. */
    private static List<String> codeParts(ThrottlePolicy policy, List<String> key, boolean anyNumber) {
        if (!anyNumber || key.isEmpty()) {
            KeyTexts.checkSize(policy.key(), key.size());
        }
        return key;
    }
}
