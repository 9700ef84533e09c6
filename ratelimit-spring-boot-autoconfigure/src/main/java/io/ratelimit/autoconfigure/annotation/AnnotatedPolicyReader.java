package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.AnnotatedPolicy;
import io.ratelimit.autoconfigure.KeyBeans;
import io.ratelimit.autoconfigure.OverrideReader;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.Overrides;
import io.ratelimit.key.RequestKey;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** Reads the policies that limit annotated methods. */
final class AnnotatedPolicyReader {

    private final RateLimitProperties properties;
    private final Throttlers throttlers;
    private final KeyBeans beans;
    private final FailureListener failures;

    AnnotatedPolicyReader(
            RateLimitProperties properties, Throttlers throttlers, KeyBeans beans, FailureListener failures) {
        this.properties = properties;
        this.throttlers = throttlers;
        this.beans = beans;
        this.failures = failures;
    }

    Map<String, AnnotatedPolicy> read() {
        Map<String, AnnotatedPolicy> policies = new HashMap<>();
        for (Map.Entry<String, Policy> policy : properties.policies().entrySet()) {
            if (policy.getValue().appliesTo() == AppliesTo.ANNOTATED) {
                policies.put(policy.getKey(), read(policy.getKey(), policy.getValue()));
            }
        }
        return policies;
    }

    private AnnotatedPolicy read(String name, Policy policy) {
        checkHasNoRequests(RateLimitProperties.property(name), policy);
        Throttler throttler = throttlers.get(name);
        ThrottlePolicy throttled = throttler.policy();
        Overrides overrides =
                new OverrideReader(policy, throttled, properties.clientIp().ipv6Prefix()).read();
        List<KeyPart> key = beans.resolve(RateLimitProperties.property(name) + ".key", policy.key());
        return new AnnotatedPolicy(
                throttler,
                new RequestKey(
                        key,
                        policy.onMissingKey(),
                        overrides,
                        beans.resolve(RateLimitProperties.property(name) + ".tier", policy.tier()),
                        failures,
                        throttlers.listener()),
                policy.cutCost(),
                failures);
    }

    /** What says which requests a policy is for, would say nothing. */
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
                    "A policy that 'applies-to: annotated' limits the calls of methods and no requests: remove this, or"
                            + " say 'applies-to: requests'.");
        }
    }
}
