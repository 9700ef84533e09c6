package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottleListener;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestTier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;

/** The policies of the configuration, read once, when the application starts. */
public final class ConfiguredPolicies {

    private final Map<String, ConfiguredPolicy> policies;
    private final ListableBeanFactory beans;
    private final FailureListener failures;

    /**
     * @param policies the policies by their names
     * @param beans the beans that keys and tiers may name
     * @param failures notified of keys, costs, tiers and conditions that fail, until it throws
     */
    ConfiguredPolicies(Map<String, ConfiguredPolicy> policies, ListableBeanFactory beans, FailureListener failures) {
        this.policies = policies;
        this.beans = beans;
        this.failures = new GuardedFailureListener(failures);
    }

    /** Returns the listener for facts that a policy can't determine. It never throws. */
    public FailureListener failures() {
        return failures;
    }

    /** Returns the policies that limit requests, or those that limit calls of annotated methods. */
    public List<ConfiguredPolicy> thatApplyTo(AppliesTo target) {
        return policies.values().stream()
                .filter(policy -> policy.properties().appliesTo() == target)
                .toList();
    }

    /** Returns the overrides of a policy; none for a policy that the configuration doesn't contain. */
    public OverrideTable overrides(String policy) {
        ConfiguredPolicy configured = policies.get(policy);
        return configured == null ? OverrideTable.NONE : configured.overrides();
    }

    /**
     * Returns the key of a policy, with the beans that its parts and its tier name.
     *
     * @throws RateLimitConfigurationException if a named bean doesn't exist or is not a {@link KeyResolver}
     */
    public RequestKey key(ConfiguredPolicy policy, ThrottleListener listener) {
        List<KeyPart> parts = new ArrayList<>(policy.properties().key().size());
        for (KeyPart part : policy.properties().key()) {
            parts.add(part.withBean(name -> find(policy.property("key"), name)));
        }
        RequestTier tier = policy.properties().tier();
        return new RequestKey(
                parts,
                policy.properties().onMissingKey(),
                policy.overrides(),
                tier == null ? null : tier.withBean(name -> find(policy.property("tier"), name)),
                failures,
                listener);
    }

    private KeyResolver find(String property, String name) {
        if (!beans.containsBean(name)) {
            throw failure(property, "there is no bean '" + name + "'");
        }
        if (beans.getBean(name) instanceof KeyResolver resolver) {
            return resolver;
        }
        throw failure(property, "the bean '" + name + "' is not a KeyResolver");
    }

    private RateLimitConfigurationException failure(String property, String reason) {
        List<String> names = List.of(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, KeyResolver.class));
        return new RateLimitConfigurationException(
                "'" + property + "' names a bean, but " + reason + ".",
                names.isEmpty()
                        ? "Declare a bean of the type io.ratelimit.key.KeyResolver, and use its name."
                        : "Use the name of a bean of the type io.ratelimit.key.KeyResolver: " + String.join(", ", names)
                                + ".",
                property);
    }

    /** Returns the policy of a name, or null if the configuration doesn't contain it. */
    public @Nullable ConfiguredPolicy get(String name) {
        return policies.get(name);
    }
}
