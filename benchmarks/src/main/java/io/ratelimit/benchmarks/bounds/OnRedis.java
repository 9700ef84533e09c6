package io.ratelimit.benchmarks.bounds;

import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.lettuce.core.RedisClient;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.resource.ClientResources;
import io.ratelimit.BucketStore;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.MeasuredClients;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.RoutingBucketStore;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.redisson.Redisson;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.ratelimiter.RateLimiterArgs;
import org.redisson.config.Config;
import org.springframework.cloud.gateway.filter.ratelimit.RedisRateLimiter;
import org.springframework.cloud.gateway.support.ConfigurationService;
import org.springframework.context.support.StaticApplicationContext;
import org.springframework.core.io.ClassPathResource;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;

/** Limiters whose buckets are in Redis, with the defaults of their clients. */
final class OnRedis {

    private static final String LOCALHOST = "127.0.0.1";
    private static final String ROUTE = "route";
    private static final ClientResources RESOURCES = ClientResources.create();

    private OnRedis() {}

    static Instance bucket4j(Limit limit, int port) {
        RedisClient client = RedisClient.create("redis://" + LOCALHOST + ":" + port);
        ProxyManager<String> manager = Bucket4jLettuce.casBasedBuilder(
                        client.connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE)))
                .expirationAfterWrite(
                        ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofSeconds(10)))
                .build();
        return closing(InMemory.bucket4j(manager, limit), client::shutdown);
    }

    static Instance redisson(Limit limit, int port) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + LOCALHOST + ":" + port);
        RedissonClient client = Redisson.create(config);
        client.getRateLimiter(Situation.KEY).trySetRate(RateType.OVERALL, limit.tokens(), limit.period());
        return new Instance() {
            @Override
            public boolean allows(String key) {
                RRateLimiter limiter = client.getRateLimiter(key);
                if (!key.equals(Situation.KEY)) {
                    limiter.trySetRate(RateType.OVERALL, limit.tokens(), limit.period());
                }
                return limiter.tryAcquire();
            }

            @Override
            public void change(Limit next) {
                client.getRateLimiter(Situation.KEY)
                        .updateRate(RateLimiterArgs.of(RateType.OVERALL, next.tokens(), next.period())
                                .keepState(true));
            }

            @Override
            public void close() {
                client.shutdown();
            }
        };
    }

    /** Returns the limiter of Spring Cloud Gateway: its class with its script. */
    @SuppressWarnings("unchecked")
    static Instance gateway(Limit limit, int port) {
        LettuceConnectionFactory connections = connections(port);
        RedisScript<List<Long>> script = (RedisScript<List<Long>>) (RedisScript<?>)
                RedisScript.of(new ClassPathResource("META-INF/scripts/request_rate_limiter.lua"), List.class);
        RedisRateLimiter limiter = new RedisRateLimiter(
                new ReactiveStringRedisTemplate(connections),
                script,
                new ConfigurationService(new StaticApplicationContext(), () -> null, () -> null));
        Consumer<Limit> configure = to -> limiter.getConfig()
                .put(
                        ROUTE,
                        new RedisRateLimiter.Config()
                                .setReplenishRate(to.perSecond())
                                .setBurstCapacity(to.tokens()));
        configure.accept(limit);
        return new Instance() {
            @Override
            public boolean allows(String key) {
                return limiter.isAllowed(ROUTE, key).block().isAllowed();
            }

            @Override
            public void change(Limit next) {
                configure.accept(next);
            }

            @Override
            public void close() {
                connections.destroy();
            }
        };
    }

    /** Returns ratelimit with the stores, deadline and circuit breaker that its starter makes, and their defaults. */
    static Instance ours(Limit limit, int port, Duration lease) {
        LettuceConnectionFactory connections = connections(port);
        Deadline deadline = new Deadline(TimeSource.system(), Duration.ofMillis(100));
        RedisStorage storage =
                RedisStorage.withScripts(MeasuredClients.create(connections), "ratelimit:bounds", "", deadline);
        storage.selfTest();
        return closing(InMemory.ours(limit, failover("Redis", storage.store(), deadline), lease), () -> {
            storage.close();
            connections.destroy();
        });
    }

    /** Returns a store that grants from memory while another one fails. */
    static BucketStore failover(String name, BucketStore remote, Deadline deadline) {
        FailoverBucketStore failover = new FailoverBucketStore(
                name, remote, BucketStore.local(TimeSource.system()), 1.0, policy -> FailureRule.LOCAL, deadline);
        return new RoutingBucketStore(BucketStore.local(TimeSource.system()), failover, policy -> true);
    }

    /** Returns connections as Spring Boot makes them. */
    private static LettuceConnectionFactory connections(int port) {
        LettuceConnectionFactory connections = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration(LOCALHOST, port),
                LettuceClientConfiguration.builder().clientResources(RESOURCES).build());
        connections.afterPropertiesSet();
        connections.start();
        return connections;
    }

    static Instance closing(Instance instance, Runnable closing) {
        return new Instance() {
            @Override
            public boolean allows(String key) throws Exception {
                return instance.allows(key);
            }

            @Override
            public void change(Limit limit) throws Exception {
                instance.change(limit);
            }

            @Override
            public void close() {
                closing.run();
            }
        };
    }
}
