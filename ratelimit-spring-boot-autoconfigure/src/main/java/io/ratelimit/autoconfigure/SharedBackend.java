package io.ratelimit.autoconfigure;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.RateLimitsEndpoint;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.RoutingBucketStore;
import io.ratelimit.remote.Storage;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.commons.logging.Log;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.util.ClassUtils;

/** The beans around a {@link Storage} that all instances share: buckets there and in memory, its health, and its changes. */
@Configuration(proxyBeanMethods = false)
class SharedBackend {

    @Bean
    FailoverBucketStore rateLimitSharedStore(
            Storage storage, ConfiguredPolicies policies, TimeSource time, Deadline deadline) {
        BackendKind kind = policies.uses(BackendKind.JDBC) ? BackendKind.JDBC : BackendKind.REDIS;
        return failover(Objects.requireNonNull(kind.place()), storage.store(), policies, time, deadline);
    }

    @Bean
    @Primary
    RoutingBucketStore rateLimitBucketStore(FailoverBucketStore shared, ConfiguredPolicies policies, TimeSource time) {
        return new RoutingBucketStore(BucketStore.local(time), shared, policies::isShared);
    }

    @Bean
    Backend rateLimitBackend(FailoverBucketStore shared) {
        return shared.backend();
    }

    /** Returns null if all policies with shared buckets are off, since no connection is opened then. */
    @Bean
    @Nullable
    ChangeBoard rateLimitChangeBoard(Storage storage, ConfiguredPolicies policies, ListableBeanFactory beans) {
        Boolean wanted = policies.sharedBackend().changes();
        boolean follows = wanted != null ? wanted : isEndpointExposed(beans);
        return follows && policies.asksShared() ? storage.changes() : null;
    }

    /** Returns whether there is an endpoint, without creating it: it needs the board. */
    private static boolean isEndpointExposed(ListableBeanFactory beans) {
        return beans.getBeanNamesForType(RateLimitsEndpoint.class, true, false).length > 0;
    }

    /** Returns a store that may fail, with the rules of the configuration. */
    static FailoverBucketStore failover(
            String name, BucketStore store, ConfiguredPolicies policies, TimeSource time, Deadline deadline) {
        return new FailoverBucketStore(
                name,
                store,
                BucketStore.local(time),
                policies.sharedBackend().localShare(),
                policies::failureRule,
                deadline);
    }

    /** Returns the configured beginning of keys, or one with the application's name. Logs the warning if both are absent. */
    static String keyPrefix(@Nullable String configured, Environment environment, Log logger, String warning) {
        if (configured != null) {
            return configured;
        }
        String application = environment.getProperty("spring.application.name", "");
        if (!application.isBlank()) {
            return "ratelimit:" + application;
        }
        logger.warn(warning);
        return "ratelimit";
    }

    /** @param needed a type of each module, by the module */
    static RateLimitConfigurationException lackingFailure(BackendKind kind, Map<String, String> needed) {
        ClassLoader loader = SharedBackend.class.getClassLoader();
        String lacking = needed.keySet().stream()
                .filter(module -> !ClassUtils.isPresent(needed.getOrDefault(module, ""), loader))
                .sorted()
                .collect(Collectors.joining(", "));
        String backend = "'backend: " + kind.text() + "'";
        return new RateLimitConfigurationException(
                backend + " is set, but these are not on the class path: " + lacking + "."
                        + (lacking.equals("lettuce-core") ? " Jedis can't be used." : ""),
                "Add the dependency 'io.ratelimit:ratelimit-spring-boot-starter-" + kind.text()
                        + "', or keep limits in the memory of each instance: set 'ratelimit.backend: local', and"
                        + " remove "
                        + backend + " from each policy.",
                "ratelimit.backend");
    }

    /** A condition that matches if a backend is set for the application or for a policy. */
    abstract static class OnBackendCondition extends SpringBootCondition {

        private static final ConfigurationPropertyName BACKEND = ConfigurationPropertyName.of("ratelimit.backend");
        private static final ConfigurationPropertyName POLICIES = ConfigurationPropertyName.of("ratelimit.policies");

        private final BackendKind kind;

        OnBackendCondition(BackendKind kind) {
            this.kind = kind;
        }

        @Override
        public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
            ConditionMessage.Builder message = ConditionMessage.forCondition("Limits on " + kind.place());
            return new ConditionOutcome(isConfigured(context.getEnvironment()), message.because("'backend' decides"));
        }

        private boolean isConfigured(Environment environment) {
            Binder binder = Binder.get(environment);
            try {
                return isKind(binder, BACKEND)
                        || backends(environment).distinct().anyMatch(backend -> isKind(binder, backend));
            } catch (BindException malformed) {
                return false; // the start fails later, when all properties are bound
            }
        }

        private boolean isKind(Binder binder, ConfigurationPropertyName name) {
            return binder.bind(name, Bindable.of(BackendKind.class)).orElse(null) == kind;
        }

        /** Returns the properties of policies' backends by their names, as binding all policies takes several times as long. */
        private static Stream<ConfigurationPropertyName> backends(Environment environment) {
            return StreamSupport.stream(
                            ConfigurationPropertySources.get(environment).spliterator(), false)
                    .filter(IterableConfigurationPropertySource.class::isInstance)
                    .flatMap(source -> ((IterableConfigurationPropertySource) source).stream())
                    .filter(name -> POLICIES.isAncestorOf(name)
                            && name.getLastElement(Form.UNIFORM).equals("backend"));
        }
    }

    /**
     * The self-test of a backend when the application starts, outside the deadline of any request. A failure doesn't stop the
     * start. A stopped application, such as one at a CRaC checkpoint, has no connection; its restart includes the self-test.
     */
    abstract static class BackendStart implements SmartInitializingSingleton, SmartLifecycle {

        private final Storage storage;
        private final FailoverBucketStore store;
        private final boolean enabled;
        private volatile boolean running = true;

        /** @param enabled whether any policy with buckets in the backend is not off; otherwise no connection is opened */
        BackendStart(Storage storage, FailoverBucketStore store, boolean enabled) {
            this.storage = storage;
            this.store = store;
            this.enabled = enabled;
        }

        @Override
        public final void afterSingletonsInstantiated() {
            if (enabled) {
                started(connects());
            }
        }

        /** Called after the self-test of the first start. */
        void started(boolean connected) {}

        /** Called when the self-test fails. */
        void failed(BackendException failure) {
            store.failedAtStart(failure);
        }

        private boolean connects() {
            try {
                storage.selfTest();
                return true;
            } catch (BackendException failure) {
                failed(failure);
                return false;
            }
        }

        @Override
        public final void start() {
            storage.start();
            running = true;
            if (enabled) {
                connects();
            }
        }

        @Override
        public final void stop() {
            running = false;
            store.awaitSettlements();
            store.giveBackSlots();
            storage.stop();
        }

        @Override
        public final boolean isRunning() {
            return running;
        }

        /** Returns the first phase: whatever takes tokens starts later, and stops earlier. */
        @Override
        public final int getPhase() {
            return Integer.MIN_VALUE;
        }
    }
}
