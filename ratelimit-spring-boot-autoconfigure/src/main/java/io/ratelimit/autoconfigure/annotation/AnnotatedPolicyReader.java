package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.AnnotatedPolicy;
import io.ratelimit.autoconfigure.OverrideReader;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.Overrides;
import io.ratelimit.key.RequestKey;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Reads the policies that limit annotated methods. */
final class AnnotatedPolicyReader {

    private final RateLimitProperties properties;
    private final Throttlers throttlers;

    AnnotatedPolicyReader(RateLimitProperties properties, Throttlers throttlers) {
        this.properties = properties;
        this.throttlers = throttlers;
    }

    Map<String, AnnotatedPolicy> read() {
        return properties.policies().entrySet().stream()
                .filter(policy -> policy.getValue().appliesTo() == AppliesTo.ANNOTATED)
                .collect(Collectors.toMap(Map.Entry::getKey, policy -> read(policy.getKey(), policy.getValue())));
    }

    private AnnotatedPolicy read(String name, Policy policy) {
        checkHasNoRequests(RateLimitProperties.property(name), policy);
        ThrottlePolicy throttled = throttlers.get(name).policy();
        Overrides overrides =
                new OverrideReader(policy, throttled, properties.clientIp().ipv6Prefix()).read();
        return new AnnotatedPolicy(
                throttled, new RequestKey(policy.key(), policy.onMissingKey(), overrides), Math.max(policy.cost(), 1));
    }

    /** What says which requests a policy is for, would say nothing. */
    private static void checkHasNoRequests(String property, Policy policy) {
        check(policy.paths().isEmpty(), property + ".paths", policy.paths());
        check(policy.excludePaths().isEmpty(), property + ".exclude-paths", policy.excludePaths());
        check(policy.methods().isEmpty(), property + ".methods", policy.methods());
        check(policy.phase() == null, property + ".phase", policy.phase());
    }

    private static void check(boolean absent, String property, @Nullable Object value) {
        if (!absent) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    value,
                    "A policy that 'applies-to: annotated' limits the calls of methods and no requests: remove this, or"
                            + " say 'applies-to: requests'.");
        }
    }
}
