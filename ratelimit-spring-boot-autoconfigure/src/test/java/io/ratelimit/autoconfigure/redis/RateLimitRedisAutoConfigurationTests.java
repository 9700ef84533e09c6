package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitConfigurationException;
import io.ratelimit.redis.RedisBuckets;
import io.ratelimit.redis.RequestDeadline;
import io.ratelimit.redis.RoutingBucketStore;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStaticMasterReplicaConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** When buckets are in Redis, and what is needed for that. No server is. */
class RateLimitRedisAutoConfigurationTests {

    private final ApplicationContextRunner bare = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(RateLimitAutoConfiguration.class, RateLimitRedisAutoConfiguration.class))
            .withPropertyValues("ratelimit.policies.api.rate=2/1s", "spring.data.redis.port=1");

    private final ApplicationContextRunner contextRunner =
            bare.withConfiguration(AutoConfigurations.of(DataRedisAutoConfiguration.class));

    @Test
    void nothingOfRedisIsThereUnlessAPolicySaysSo() {
        contextRunner.run(context -> assertThat(context)
                .hasSingleBean(BucketStore.class)
                .doesNotHaveBean(RedisBuckets.class)
                .doesNotHaveBean(RequestDeadline.class)
                .doesNotHaveBean(Backend.class));
        contextRunner
                .withPropertyValues("ratelimit.enabled=false", "ratelimit.backend=redis")
                .run(context -> assertThat(context).doesNotHaveBean(BucketStore.class));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ratelimit.backend=redis",
                "ratelimit.backend=REDIS",
                "ratelimit.backend=re-dis",
                "ratelimit.policies.api.backend=redis",
                "ratelimit.policies.other.backend=Redis"
            })
    void theApplicationOrAPolicyMaySaySo(String property) {
        contextRunner
                .withPropertyValues("ratelimit.policies.other.rate=2/1s", property)
                .run(context -> assertThat(context.getBean(BucketStore.class)).isInstanceOf(RoutingBucketStore.class));
    }

    @Test
    void aStoreOfTheApplicationsOwnReplacesIt() {
        BucketStore own = BucketStore.local(new SystemTimeSource());
        contextRunner
                .withPropertyValues("ratelimit.backend=redis")
                .withBean(BucketStore.class, () -> own)
                .run(context -> assertThat(context)
                        .doesNotHaveBean(RedisBuckets.class)
                        .getBean(BucketStore.class)
                        .isSameAs(own));
    }

    @Test
    void withoutAConnectionFactoryItSaysWhatToType() {
        bare.withPropertyValues("ratelimit.backend=redis")
                .run(context -> assertFailure(
                        context,
                        "Limits are to be kept in Redis ('backend: redis'), but there is not exactly one"
                                + " RedisConnectionFactory to tell where it is.",
                        "Add 'spring-boot-starter-data-redis' and say 'spring.data.redis.host', or declare one bean of the"
                                + " type LettuceConnectionFactory as primary."));
    }

    @Test
    void jedisIsRefused() {
        RedisConnectionFactory other = (RedisConnectionFactory) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {RedisConnectionFactory.class},
                (proxy, method, args) -> null);
        bare.withPropertyValues("ratelimit.backend=redis")
                .withBean(RedisConnectionFactory.class, () -> other)
                .run(context -> assertFailure(
                        context,
                        "Limits are to be kept in Redis ('backend: redis'), which needs Lettuce, but the"
                                + " RedisConnectionFactory is a "
                                + other.getClass().getSimpleName() + ".",
                        "Say 'spring.data.redis.client-type: lettuce', or remove Jedis from the class path."));
    }

    @Test
    void transactionsNeedASingleServer() {
        contextRunner
                .withPropertyValues(
                        "ratelimit.backend=redis",
                        "ratelimit.redis.strategy=transaction",
                        "spring.data.redis.cluster.nodes=127.0.0.1:1")
                .run(context -> assertFailure(
                        context,
                        "A transaction can't span the nodes of a Redis cluster.",
                        "Say 'ratelimit.redis.strategy: script', or configure a single server or Sentinel."));
    }

    /** Nobody would tell which of them may be written to after a failover. */
    @Test
    void aListOfAMasterAndItsReplicasIsRefused() {
        contextRunner
                .withPropertyValues("ratelimit.backend=redis", "spring.data.redis.masterreplica.nodes=127.0.0.1:1")
                .run(RateLimitRedisAutoConfigurationTests::assertMasterReplicaIsRefused);
        bare.withPropertyValues("ratelimit.policies.api.backend=redis")
                .withBean(
                        LettuceConnectionFactory.class,
                        () -> new LettuceConnectionFactory(new RedisStaticMasterReplicaConfiguration("127.0.0.1", 1)))
                .run(RateLimitRedisAutoConfigurationTests::assertMasterReplicaIsRefused);
    }

    private static void assertMasterReplicaIsRefused(AssertableApplicationContext context) {
        assertFailure(
                context,
                "Limits are to be kept in Redis ('backend: redis'), which is configured as a fixed list of a master and"
                        + " its replicas: after a failover nothing would tell which of them may be written to.",
                "Say 'spring.data.redis.host' (an address that leads to the master), or configure Sentinel or a"
                        + " cluster, instead of 'spring.data.redis.masterreplica.nodes'.");
    }

    @Test
    void withoutItsAutoConfigurationNothingIsSilentlyInMemory() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
                .withPropertyValues("ratelimit.policies.api.rate=2/1s", "ratelimit.policies.api.backend=redis")
                .run(
                        context -> assertFailure(
                                context,
                                "Limits are to be kept in Redis ('backend: redis'), but the auto-configuration for that is not"
                                        + " there: instances would share nothing.",
                                "Don't exclude 'RateLimitRedisAutoConfiguration', or say 'ratelimit.backend: local'. Where the"
                                        + " application is processed ahead of time, 'backend: redis' must be there when it is built."));
    }

    private static void assertFailure(AssertableApplicationContext context, String description, String action) {
        assertThat(context.getStartupFailure())
                .rootCause()
                .isInstanceOfSatisfying(RateLimitConfigurationException.class, failure -> {
                    assertThat(failure).hasMessage(description);
                    assertThat(failure.action()).isEqualTo(action);
                });
    }
}
