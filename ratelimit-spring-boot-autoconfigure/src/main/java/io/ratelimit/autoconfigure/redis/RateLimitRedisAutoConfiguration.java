package io.ratelimit.autoconfigure.redis;

import io.lettuce.core.RedisClient;
import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.RateLimitsEndpoint;
import io.ratelimit.autoconfigure.OnBackendCondition;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitEnabledCondition;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.BackendKind;
import io.ratelimit.policy.RateLimitProperties.Redis;
import io.ratelimit.policy.RateLimitProperties.Redis.Strategy;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.RoutingBucketStore;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.ClassUtils;

/** Auto-configuration for policies with their buckets in Redis. */
@AutoConfiguration(
        before = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration")
@Conditional({RateLimitEnabledCondition.class, RateLimitRedisAutoConfiguration.OnRedisCondition.class})
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitRedisAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitRedisAutoConfiguration.class);

    /** Buckets in Redis, together with those in memory. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({RedisStorage.class, LettuceConnectionFactory.class, RedisClient.class})
    @ConditionalOnMissingBean(BucketStore.class)
    @Lazy(false)
    static class OnRedis {

        @Bean
        RedisStorage rateLimitRedisStorage(
                ObjectProvider<RedisConnectionFactory> factories,
                RateLimitProperties properties,
                Deadline deadline,
                Environment environment) {
            LettuceConnectionFactory application = lettuce(factories.getIfUnique());
            Redis redis = properties.redis();
            boolean transactions = redis.strategy() == Strategy.TRANSACTION;
            reject(application, transactions);
            LettuceClients clients = new LettuceClients(application);
            String prefix = redis.keyPrefix() == null ? prefix(environment) : redis.keyPrefix();
            String secret = Objects.requireNonNullElse(redis.keySecret(), "");
            return transactions
                    ? RedisStorage.withTransactions(clients, prefix, secret, deadline)
                    : RedisStorage.withScripts(clients, prefix, secret, deadline);
        }

        private static LettuceConnectionFactory lettuce(@Nullable RedisConnectionFactory factory) {
            if (factory instanceof LettuceConnectionFactory lettuce) {
                return lettuce;
            }
            throw factory == null
                    ? new RateLimitConfigurationException(
                            "'backend: redis' is set, but there is not exactly one RedisConnectionFactory with the address"
                                    + " of Redis.",
                            "Add 'spring-boot-starter-data-redis' and set 'spring.data.redis.host', or declare one bean of"
                                    + " the type LettuceConnectionFactory as primary.",
                            "ratelimit.backend")
                    : new RateLimitConfigurationException(
                            "'backend: redis' is set and needs Lettuce, but the RedisConnectionFactory is a "
                                    + factory.getClass().getSimpleName() + ".",
                            "Set 'spring.data.redis.client-type: lettuce', or remove Jedis from the class path.",
                            "ratelimit.backend");
        }

        private static void reject(LettuceConnectionFactory application, boolean transactions) {
            if (RedisConfiguration.isStaticMasterReplicaConfiguration(LettuceClients.location(application))) {
                throw new RateLimitConfigurationException(
                        "'backend: redis' is set, and Redis is configured as a fixed list of a master and its replicas: the"
                                + " list doesn't show which of them is the master after a failover.",
                        "Set 'spring.data.redis.host' (an address that leads to the master), or configure Sentinel or a"
                                + " cluster, instead of 'spring.data.redis.masterreplica.nodes'.",
                        "spring.data.redis.masterreplica.nodes");
            }
            if (transactions && application.isClusterAware()) {
                throw new RateLimitConfigurationException(
                        "A transaction can't span the nodes of a Redis cluster.",
                        "Set 'ratelimit.redis.strategy: script', or configure a single server or Sentinel.",
                        "ratelimit.redis.strategy");
            }
        }

        private static String prefix(Environment environment) {
            String application = environment.getProperty("spring.application.name", "");
            if (!application.isBlank()) {
                return "ratelimit:" + application;
            }
            logger.warn(
                    "The application has no name, so its keys in Redis begin with 'ratelimit': it would share limits"
                            + " with another application without a name that has a policy of the same name. Set"
                            + " 'spring.application.name' or 'ratelimit.redis.key-prefix'");
            return "ratelimit";
        }

        @Bean
        FailoverBucketStore rateLimitRedisStore(
                RedisStorage storage,
                RateLimitProperties properties,
                ConfiguredPolicies policies,
                TimeSource time,
                Deadline deadline) {
            return new FailoverBucketStore(
                    "Redis",
                    storage.store(),
                    BucketStore.local(time),
                    properties.redis().localShare(),
                    policies::failureRule,
                    deadline);
        }

        @Bean
        @Primary
        RoutingBucketStore rateLimitBucketStore(
                FailoverBucketStore redis, ConfiguredPolicies policies, TimeSource time) {
            return new RoutingBucketStore(BucketStore.local(time), redis, policies::isShared);
        }

        @Bean
        Backend rateLimitBackend(FailoverBucketStore redis) {
            return redis.backend();
        }

        /** Returns null if all policies in Redis are off, since no connection is opened then. */
        @Bean
        @Nullable
        ChangeBoard rateLimitChangeBoard(
                RedisStorage storage,
                RateLimitProperties properties,
                ConfiguredPolicies policies,
                ListableBeanFactory beans) {
            Boolean wanted = properties.redis().changes();
            boolean follows = wanted != null ? wanted : isEndpointExposed(beans);
            return follows && policies.asksShared() ? storage.changes() : null;
        }

        /** Returns whether there is an endpoint, without creating it: it needs the board. */
        private static boolean isEndpointExposed(ListableBeanFactory beans) {
            return beans.getBeanNamesForType(RateLimitsEndpoint.class, true, false).length > 0;
        }

        @Bean
        @Lazy(false)
        RedisStart rateLimitRedisStart(
                RedisStorage storage,
                FailoverBucketStore redis,
                ObjectProvider<Throttlers> throttlers,
                ConfiguredPolicies policies) {
            return new RedisStart(storage, redis, throttlers, policies);
        }
    }

    /** Something that buckets in Redis need isn't on the class path. */
    @Configuration(proxyBeanMethods = false)
    @Conditional(WithoutRedis.Lacking.class)
    @ConditionalOnMissingBean(BucketStore.class)
    static class WithoutRedis {

        /** What buckets in Redis need: the module and one of its types. Jedis can't be used, as it blocks despite the deadline. */
        private static final Map<String, String> NEEDED = new TreeMap<>(Map.of(
                "ratelimit-redis", "io.ratelimit.redis.RedisStorage",
                "spring-boot-data-redis", "org.springframework.data.redis.connection.RedisConnectionFactory",
                "lettuce-core", "io.lettuce.core.RedisClient"));

        @Bean
        BucketStore rateLimitBucketStore() {
            List<String> lacking = lacking();
            throw new RateLimitConfigurationException(
                    "'backend: redis' is set, but these are not on the class path: " + String.join(", ", lacking) + "."
                            + (lacking.equals(List.of("lettuce-core")) ? " Jedis can't be used." : ""),
                    "Add the dependency 'io.ratelimit:ratelimit-spring-boot-starter-redis', or keep limits in the memory of"
                            + " each instance: set 'ratelimit.backend: local', and remove 'backend: redis' from each"
                            + " policy.",
                    "ratelimit.backend");
        }

        private static List<String> lacking() {
            ClassLoader loader = RateLimitRedisAutoConfiguration.class.getClassLoader();
            return NEEDED.entrySet().stream()
                    .filter(needed -> !ClassUtils.isPresent(needed.getValue(), loader))
                    .map(Map.Entry::getKey)
                    .toList();
        }

        /** A condition that matches if something is lacking. */
        static final class Lacking implements Condition {

            @Override
            public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
                return !lacking().isEmpty();
            }
        }
    }

    /** A condition that matches if {@code backend: redis} is set for the application or for a policy. */
    static final class OnRedisCondition extends OnBackendCondition {

        OnRedisCondition() {
            super(BackendKind.REDIS);
        }
    }
}
