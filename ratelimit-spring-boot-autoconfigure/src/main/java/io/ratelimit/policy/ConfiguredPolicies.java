package io.ratelimit.policy;

import io.ratelimit.Backend;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Shares;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyResolver;
import io.ratelimit.key.LimitResolver;
import io.ratelimit.key.OverrideTable;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.RequestLimit;
import io.ratelimit.key.RequestTier;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.GuaranteedShare;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;

/** The policies of the configuration, read once, when the application starts. */
public final class ConfiguredPolicies {

    /**
     * The name of a bean that every enabled application has. Conditions name it, because a condition on a type compares the
     * types of all beans.
     */
    public static final String BEAN_NAME = "rateLimitConfiguredPolicies";

    /** Returns the kind of the backend that decides for a policy: local, redis, jdbc, or custom for a store of the application. */
    public static String backendOf(PolicyThrottler throttler) {
        Backend backend = throttler.backend();
        return backend == null ? "local" : kindOf(backend, "custom");
    }

    /** Returns the kind of a backend, redis or jdbc; for a store of the application another text. */
    public static String kindOf(Backend backend, String custom) {
        return Stream.of(BackendKind.values())
                .filter(kind -> backend.name().equals(kind.place()))
                .map(BackendKind::text)
                .findFirst()
                .orElse(custom);
    }

    private final RateLimitProperties properties;
    private final Map<String, ConfiguredPolicy> policies = new LinkedHashMap<>();
    private final ListableBeanFactory beans;
    private final FailureListener failures;

    /**
     * @param beans the beans that keys, tiers, limits, costs and conditions may name
     * @param failures notified of keys, costs, tiers, limits and conditions that fail, until it throws
     */
    ConfiguredPolicies(
            RateLimitProperties properties,
            List<ConfiguredPolicy> policies,
            ListableBeanFactory beans,
            FailureListener failures) {
        this.properties = properties;
        for (ConfiguredPolicy policy : policies) {
            this.policies.put(policy.name(), policy);
        }
        this.beans = beans;
        this.failures = new GuardedFailureListener(failures);
    }

    public List<ThrottlePolicy> all() {
        List<ThrottlePolicy> all = new ArrayList<>();
        for (ConfiguredPolicy policy : policies.values()) {
            all.add(policy.policy());
        }
        return List.copyOf(all);
    }

    /** Lets each throttler of a policy of the configuration check changes by the rules of the configuration. */
    public void checkChanges(Throttlers throttlers) {
        for (PolicyThrottler throttler : throttlers.all()) {
            ConfiguredPolicy policy = policies.get(throttler.policy().name());
            if (policy != null) {
                throttler.checkChanges(policy::checkChange);
            }
        }
    }

    /** Returns the listener for facts that a policy can't determine. It never throws. */
    public FailureListener failures() {
        return failures;
    }

    /** Returns whether a policy keeps its buckets in a shared place. A limit in an annotation uses the application's backend. */
    public boolean isShared(ThrottlePolicy policy) {
        return backend(properties(policy.name())) != BackendKind.LOCAL;
    }

    private BackendKind backend(@Nullable Policy policy) {
        return policy == null || policy.backend() == null ? properties.backend() : policy.backend();
    }

    /** Returns whether any policy, or any limit in an annotation, keeps its buckets in a place. */
    public boolean uses(BackendKind kind) {
        return properties.backend() == kind
                || policies.values().stream().anyMatch(policy -> backend(policy.properties()) == kind);
    }

    /** Returns whether any policy in a shared place, or a limit in an annotation, may be on. */
    public boolean asksShared() {
        return properties.mode() != Mode.OFF
                && (properties.backend() != BackendKind.LOCAL
                        || policies.values().stream()
                                .map(ConfiguredPolicy::properties)
                                .anyMatch(policy -> backend(policy) != BackendKind.LOCAL && policy.mode() != Mode.OFF));
    }

    /** Returns the properties of the shared backend; those of Redis if all buckets are in memory. */
    public BackendProperties sharedBackend() {
        return uses(BackendKind.JDBC) ? properties.jdbc() : properties.redis();
    }

    /** Returns the rule of a policy while its backend is unavailable. */
    public FailureRule failureRule(ThrottlePolicy policy) {
        Policy configured = properties(policy.name());
        FailureRule own = configured == null ? null : configured.onBackendFailure();
        return own == null ? properties.onBackendFailure() : own;
    }

    /** Returns whether a policy gives tokens back. */
    public boolean refunds(ThrottlePolicy policy) {
        Policy configured = properties(policy.name());
        return configured != null && !configured.refundOn().isEmpty();
    }

    /** Returns the policies that limit requests, or those that limit calls of annotated methods. */
    public List<ConfiguredPolicy> thatApplyTo(AppliesTo target) {
        List<ConfiguredPolicy> found = new ArrayList<>();
        for (ConfiguredPolicy policy : policies.values()) {
            if (policy.properties().appliesTo() == target) {
                found.add(policy);
            }
        }
        return List.copyOf(found);
    }

    /** Returns the overrides of a policy; none for a policy that the configuration doesn't contain. */
    public OverrideTable overrides(String policy) {
        ConfiguredPolicy configured = policies.get(policy);
        return configured == null ? OverrideTable.NONE : configured.overrides();
    }

    /** Returns the property that limits a policy's requests in flight: its own, that of a tier or an override; null for none. */
    public @Nullable String inFlightProperty(String policy) {
        Policy configured = properties(policy);
        return configured == null ? null : PolicyReader.inFlight(RateLimitProperties.property(policy), configured);
    }

    /** Returns whether a policy, one of its tiers or one of its overrides limits how many calls are in flight. */
    public boolean limitsInFlight(ThrottlePolicy policy) {
        return overrides(policy.name()).limitInFlight(policy);
    }

    /**
     * Returns the key of a policy, with the beans that its parts, its tier and its limit name.
     *
     * @throws RateLimitConfigurationException if a named bean doesn't exist or is of the wrong type
     */
    public RequestKey key(ConfiguredPolicy policy, ThrottleListener listener) {
        GuaranteedShare guaranteed = policy.properties().guaranteed();
        RequestTier tier = policy.properties().tier();
        RequestLimit limit = policy.properties().limit();
        return new RequestKey(
                withBeans(policy.properties().key(), policy.property("key")),
                policy.properties().onMissingKey(),
                policy.overrides(),
                tier == null ? null : tier.withBeans(name -> find(policy.property("tier"), name)),
                limit == null
                        ? null
                        : limit.withBean(
                                name -> find(policy.property("limit"), name, LimitResolver.class),
                                policy.cost().minTokens()),
                guaranteed == null ? List.of() : withBeans(guaranteed.key(), policy.property("guaranteed.key")),
                failures,
                listener);
    }

    private List<KeyPart> withBeans(List<KeyPart> parts, String property) {
        List<KeyPart> found = new ArrayList<>();
        for (KeyPart part : parts) {
            found.add(part.withBeans(name -> find(property, name)));
        }
        return List.copyOf(found);
    }

    /**
     * Returns the texts of a key's parts as requests of a policy have them. If keys have guaranteed shares, it is the key of
     * a share. Texts of a policy that the configuration doesn't contain are unchanged.
     *
     * @param endpoints the names of the application's endpoints; read only for a key with an endpoint
     * @throws IllegalArgumentException if the number of texts is wrong, or a text never equals that of a request; the
     *     message doesn't quote the text
     */
    public List<String> parseKey(ThrottlePolicy policy, List<String> texts, Collection<String> endpoints) {
        Policy configured = properties(policy.name());
        if (configured == null) {
            Shares shares = policy.shares();
            KeyTexts.checkSize(shares == null ? policy.key() : shares.key(), texts.size());
            return texts;
        }
        int ipv6Prefix = properties.clientIp().ipv6Prefix();
        GuaranteedShare share = configured.guaranteed();
        List<KeyPart> parts = share == null ? configured.key() : share.key();
        return new KeyTexts(parts, configured.ignoreCase(), ipv6Prefix).parse(texts, endpoints);
    }

    /**
     * Returns the cost of a policy, limited to {@code max-cost}, with the beans that it reads.
     *
     * @throws RateLimitConfigurationException if a bean doesn't exist or is not a {@link KeyResolver}
     */
    public RequestCost cost(ConfiguredPolicy policy) {
        return policy.cost().withBeans(name -> find(policy.property("cost"), name));
    }

    /**
     * Returns the condition of a policy, with the beans that it reads; null if the policy has none.
     *
     * @throws RateLimitConfigurationException if a bean doesn't exist or is not a {@link KeyResolver}
     */
    public @Nullable RequestCondition condition(ConfiguredPolicy policy) {
        RequestCondition condition = policy.properties().condition();
        return condition == null ? null : condition.withBeans(name -> find(policy.property("condition"), name));
    }

    private KeyResolver find(String property, String name) {
        return find(property, name, KeyResolver.class);
    }

    private <T> T find(String property, String name, Class<T> type) {
        if (!beans.containsBean(name)) {
            throw failure(property, "there is no bean '" + name + "'", type);
        }
        Object bean = beans.getBean(name);
        if (type.isInstance(bean)) {
            return type.cast(bean);
        }
        throw failure(property, "the bean '" + name + "' is not a " + type.getSimpleName(), type);
    }

    private RateLimitConfigurationException failure(String property, String reason, Class<?> type) {
        List<String> names = List.of(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, type));
        return new RateLimitConfigurationException(
                "'" + property + "' names a bean, but " + reason + ".",
                names.isEmpty()
                        ? "Declare a bean of the type " + type.getName() + ", and use its name."
                        : "Use the name of a bean of the type " + type.getName() + ": " + String.join(", ", names)
                                + ".",
                property);
    }

    /** Returns the policy of a name, or null if the configuration doesn't contain it. */
    public @Nullable ConfiguredPolicy get(String name) {
        return policies.get(name);
    }

    /** Returns the properties of the policy of a name, or null if the configuration doesn't contain it. */
    public @Nullable Policy properties(String name) {
        ConfiguredPolicy configured = policies.get(name);
        return configured == null ? null : configured.properties();
    }

    /**
     * A policy of the configuration, as {@link PolicyReader} has checked and read it.
     *
     * @param policy the policy for the core, in the weaker of its own mode and the application's
     * @param overrides the keys and networks with other limits
     */
    public record ConfiguredPolicy(Policy properties, ThrottlePolicy policy, OverrideTable overrides) {

        public String name() {
            return policy.name();
        }

        /** Returns the path of one of the policy's properties, such as {@code ratelimit.policies.api.rate}. */
        public String property(String property) {
            return RateLimitProperties.property(name()) + "." + property;
        }

        /** Returns the cost, limited to {@code max-cost}. */
        public RequestCost cost() {
            return cost(properties);
        }

        static RequestCost cost(Policy properties) {
            return properties.maxCost() == null
                    ? properties.cost()
                    : properties.cost().withMaximum(properties.maxCost());
        }

        /** Returns the {@code max-cost}, or the smallest number of tokens that a request takes if the policy has none. */
        static long largestCost(Policy properties) {
            return properties.maxCost() == null ? properties.cost().minTokens() : properties.maxCost();
        }

        /**
         * Checks a change of the running policy. A change that the configuration could not have is rejected.
         *
         * @throws IllegalArgumentException if a bucket could never hold the cost, or fills too fast for the lease, or if the
         *     requests of a share could never take the cost
         */
        void checkChange(ThrottlePolicy changed) {
            String name = "'" + changed.name() + "'";
            checkHoldsCost(changed.spec(), name);
            checkPeriod(changed.spec(), policy.spec(), name);
            PolicyReader.checkLease(changed, Stream.empty());
            ShareReader.checkLeft(changed, cost().minTokens());
            for (Map.Entry<String, BucketSpec> tier : changed.tiers().entrySet()) {
                String owner = "the tier '" + tier.getKey() + "' of " + name;
                checkHoldsCost(tier.getValue(), owner);
                checkPeriod(tier.getValue(), policy.tiers().get(tier.getKey()), owner);
            }
        }

        /** A bucket in Redis is that of one calendar. */
        private static void checkPeriod(BucketSpec changed, @Nullable BucketSpec configured, String owner) {
            if (configured != null
                    && changed.refill() == Refill.CALENDAR
                    && !changed.rate().period().equals(configured.rate().period())) {
                throw new IllegalArgumentException("the period of " + owner + " must stay that of its calendar, as in "
                        + configured.rate() + ", but was " + changed.rate());
            }
        }

        private void checkHoldsCost(BucketSpec spec, String owner) {
            long cost = largestCost(properties);
            if (spec.capacity() < cost) {
                throw new IllegalArgumentException("capacity of " + owner + " must be at least the "
                        + (properties.maxCost() == null ? "" : "max-") + "cost of the policy, " + cost + ", but was "
                        + spec.capacity());
            }
        }
    }

    /** A listener that is reported once and not called again if it throws, so that it never fails a request. Thread-safe. */
    private static final class GuardedFailureListener implements FailureListener {

        private static final Log logger = LogFactory.getLog(FailureListener.class);

        private final FailureListener listener;
        private final AtomicBoolean broken = new AtomicBoolean();

        GuardedFailureListener(FailureListener listener) {
            this.listener = listener;
        }

        @Override
        public void failed(String policy, String fact, String reason) {
            call(guarded -> guarded.failed(policy, fact, reason));
        }

        @Override
        public void failed(String policy, String fact, Throwable failure) {
            call(guarded -> guarded.failed(policy, fact, failure));
        }

        /** Reports only the type and the stack trace, since the exception's message may contain what a client sent. */
        private void call(Consumer<FailureListener> call) {
            try {
                if (!broken.get()) {
                    call.accept(listener);
                }
            } catch (RuntimeException | LinkageError | AssertionError | StackOverflowError failure) {
                if (!(failure instanceof StackOverflowError) && broken.compareAndSet(false, true)) {
                    Throwable report =
                            new IllegalStateException(failure.getClass().getName());
                    report.setStackTrace(failure.getStackTrace());
                    String name = listener.getClass().getName();
                    logger.error("The FailureListener " + name + " failed, and is not called any more", report);
                }
            }
        }
    }
}
