package io.ratelimit.autoconfigure;

import io.ratelimit.Backend;
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
import java.util.List;
import java.util.Map;
import org.apache.commons.logging.Log;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;

/** The beans around a {@link Storage} that all instances share: buckets there and in memory, its health, and its changes. */
@Configuration(proxyBeanMethods = false)
class SharedBackend {

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

    /**
     * Returns a store that may fail, with the rules of the configuration.
     *
     * @param name the name of the store in the log and the health
     */
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

    /**
     * Returns the modules that a backend needs and that aren't on the class path.
     *
     * @param needed a type of each module, by the module
     */
    static List<String> lacking(Map<String, String> needed) {
        ClassLoader loader = SharedBackend.class.getClassLoader();
        return needed.entrySet().stream()
                .filter(type -> !ClassUtils.isPresent(type.getValue(), loader))
                .map(Map.Entry::getKey)
                .sorted()
                .toList();
    }

    /**
     * Returns the failure of a start without modules that the backend needs.
     *
     * @param remark follows the list of the modules; may be empty
     */
    static RateLimitConfigurationException lackingFailure(BackendKind kind, List<String> lacking, String remark) {
        String backend = "'backend: " + kind.text() + "'";
        return new RateLimitConfigurationException(
                backend + " is set, but these are not on the class path: " + String.join(", ", lacking) + "." + remark,
                "Add the dependency 'io.ratelimit:ratelimit-spring-boot-starter-" + kind.text()
                        + "', or keep limits in the memory of each instance: set 'ratelimit.backend: local', and remove "
                        + backend + " from each policy.",
                "ratelimit.backend");
    }
}
