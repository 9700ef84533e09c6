package io.ratelimit.autoconfigure;

import io.lettuce.core.RedisClient;
import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.SharedBackend.BackendStart;
import io.ratelimit.autoconfigure.SharedBackend.OnBackendCondition;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.BackendProperties.Redis;
import io.ratelimit.policy.BackendProperties.Redis.Strategy;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitEnabledCondition;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Auto-configuration for policies with their buckets in Redis. */
@AutoConfiguration(
        before = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration")
@Conditional({RateLimitEnabledCondition.class, RateLimitRedisAutoConfiguration.OnRedisCondition.class})
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitRedisAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitRedisAutoConfiguration.class);

    /** What buckets in Redis need: the module and one of its types. Jedis can't be used, as it blocks despite the deadline. */
    private static final Map<String, String> NEEDED = Map.of(
            "ratelimit-redis", "io.ratelimit.redis.RedisStorage",
            "spring-boot-data-redis", "org.springframework.data.redis.connection.RedisConnectionFactory",
            "lettuce-core", "io.lettuce.core.RedisClient");

    /** Stops the start if something that buckets in Redis need isn't on the class path. Otherwise there is a store. */
    @Bean
    @ConditionalOnMissingBean
    BucketStore rateLimitBucketStore() {
        throw SharedBackend.lackingFailure(BackendKind.REDIS, NEEDED);
    }

    /** Buckets in Redis, together with those in memory. */
    @Configuration(proxyBeanMethods = false)
    @Import(SharedBackend.class)
    @ConditionalOnClass({RedisStorage.class, LettuceConnectionFactory.class, RedisClient.class})
    @ConditionalOnMissingBean(BucketStore.class)
    @Lazy(false)
    static class OnRedis {

        @Bean
        RedisStorage rateLimitRedisStorage(
                ObjectProvider<RedisConnectionFactory> factories,
                ObjectProvider<LettuceConnectionFactory> lettuceFactories,
                RateLimitProperties properties,
                Deadline deadline,
                Environment environment) {
            LettuceConnectionFactory application = lettuce(factories.getIfUnique(), lettuceFactories.getIfUnique());
            Redis redis = properties.redis();
            boolean transactions = redis.strategy() == Strategy.TRANSACTION;
            reject(application, transactions);
            LettuceClients clients = new LettuceClients(application);
            String prefix = SharedBackend.keyPrefix(
                    redis.keyPrefix(),
                    environment,
                    logger,
                    "The application has no name, so its keys in Redis begin with 'ratelimit': it would share limits"
                            + " with another application without a name that has a policy of the same name. Set"
                            + " 'spring.application.name' or 'ratelimit.redis.key-prefix'");
            String secret = Objects.requireNonNullElse(redis.keySecret(), "");
            return transactions
                    ? RedisStorage.withTransactions(clients, prefix, secret, deadline)
                    : RedisStorage.withScripts(clients, prefix, secret, deadline);
        }

        /**
         * @param factory the application's only or primary connection factory; perhaps that of Jedis or Redisson
         * @param lettuce the only or primary one of Lettuce
         */
        private static LettuceConnectionFactory lettuce(
                @Nullable RedisConnectionFactory factory, @Nullable LettuceConnectionFactory lettuce) {
            if (factory instanceof LettuceConnectionFactory own) {
                return own;
            }
            if (lettuce != null) {
                return lettuce;
            }
            throw factory == null
                    ? new RateLimitConfigurationException(
                            "'backend: redis' is set, but there is not exactly one RedisConnectionFactory with the"
                                    + " address of Redis.",
                            "Add 'spring-boot-starter-data-redis' and set 'spring.data.redis.host', or declare one"
                                    + " bean of the type LettuceConnectionFactory as primary.",
                            "ratelimit.backend")
                    : new RateLimitConfigurationException(
                            "'backend: redis' is set and needs Lettuce, but the RedisConnectionFactory is a "
                                    + factory.getClass().getSimpleName() + ".",
                            "Declare a bean of the type LettuceConnectionFactory for the limits; the other one may stay."
                                    + " In place of Jedis, you can set 'spring.data.redis.client-type: lettuce'.",
                            "ratelimit.backend");
        }

        private static void reject(LettuceConnectionFactory application, boolean transactions) {
            if (RedisConfiguration.isStaticMasterReplicaConfiguration(LettuceClients.location(application))) {
                throw new RateLimitConfigurationException(
                        "'backend: redis' is set, and Redis is configured as a fixed list of a primary and its"
                                + " replicas: the list doesn't show which of them is the primary after a failover.",
                        "Set 'spring.data.redis.host' (an address that leads to the primary), or configure Sentinel or a"
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

    /** A condition that matches if {@code backend: redis} is set for the application or for a policy. */
    static final class OnRedisCondition extends OnBackendCondition {

        OnRedisCondition() {
            super(BackendKind.REDIS);
        }
    }

    /** The start of Redis, with advice about policies and settings that don't fit it. */
    static final class RedisStart extends BackendStart {

        private static final Log logger = LogFactory.getLog("io.ratelimit.autoconfigure.RedisStart");

        private final RedisStorage storage;
        private final FailoverBucketStore store;
        private final ObjectProvider<Throttlers> throttlers;
        private final ConfiguredPolicies policies;

        RedisStart(
                RedisStorage storage,
                FailoverBucketStore store,
                ObjectProvider<Throttlers> throttlers,
                ConfiguredPolicies policies) {
            super(storage, store, policies.asksShared());
            this.storage = storage;
            this.store = store;
            this.throttlers = throttlers;
            this.policies = policies;
        }

        @Override
        void started(boolean connected) {
            throttlers.getObject().all().stream()
                    .map(PolicyThrottler::policy)
                    .filter(policies::isShared)
                    .forEach(RedisStart::warnAboutWait);
            EvictionWarning eviction = new EvictionWarning(storage, !connected);
            if (connected) {
                eviction.check().join();
            }
            store.backend().addListener(eviction);
        }

        private static void warnAboutWait(ThrottlePolicy policy) {
            Duration maxWait = RedisStorage.maxWait(policy);
            if (policy.maxWait().compareTo(maxWait) > 0) {
                logger.warn("Throttle policy '" + policy.name()
                        + "' has a 'max-wait' beyond the time by which tokens can be taken"
                        + " ahead in Redis, which is " + maxWait.toMinutes()
                        + "m: a call that would wait longer is denied. Set a shorter 'max-wait', or a rate of rounder"
                        + " numbers");
            }
        }

        /**
         * Warns once if Redis may evict buckets. It is checked at the start, and when Redis succeeds after a failure: it was down at
         * the start, or another server has taken over. Thread-safe.
         */
        private static final class EvictionWarning implements Backend.Listener {

            private static final long PAUSE = Duration.ofMinutes(1).toNanos();

            private final RedisStorage storage;
            private final AtomicBoolean due;
            private volatile long notBefore = System.nanoTime();
            private volatile boolean warned;

            EvictionWarning(RedisStorage storage, boolean due) {
                this.storage = storage;
                this.due = new AtomicBoolean(due);
            }

            @Override
            public void callCompleted(long nanos, boolean failed) {
                if (failed) {
                    due.set(!warned);
                } else if (due.get() && System.nanoTime() - notBefore >= 0 && due.compareAndSet(true, false)) {
                    notBefore = System.nanoTime() + PAUSE;
                    check();
                }
            }

            /** Returns the end of the check. */
            CompletableFuture<?> check() {
                return storage.memory().handle((memory, forbidden) -> {
                    if (forbidden != null) {
                        logger.debug("The memory policy of Redis is unknown: " + forbidden.getMessage());
                    } else if (memory.mayEvict() && !warned) {
                        warned = true;
                        logger.warn("Redis may evict buckets when its memory is full (maxmemory-policy is '"
                                + memory.policy()
                                + "'): an evicted bucket is full again, and evicted slots of 'in-flight' are free. With"
                                + " 'allkeys', changes for all instances end. Set 'noeviction', or use a separate Redis for"
                                + " the limits");
                    }
                    return true;
                });
            }
        }
    }
}
