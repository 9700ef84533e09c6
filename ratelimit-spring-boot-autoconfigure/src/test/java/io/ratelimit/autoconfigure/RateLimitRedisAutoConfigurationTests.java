package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.RoutingBucketStore;
import java.lang.reflect.Proxy;
import java.util.Map;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStaticMasterReplicaConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.jdbc.datasource.SimpleDriverDataSource;

/** The conditions for buckets in Redis. These tests need no server. */
class RateLimitRedisAutoConfigurationTests {

    private final ApplicationContextRunner bare = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    RateLimitAutoConfiguration.class,
                    RateLimitFailoverAutoConfiguration.class,
                    RateLimitRedisAutoConfiguration.class))
            .withPropertyValues("ratelimit.policies.api.rate=2/1s", "spring.data.redis.port=1");

    private final ApplicationContextRunner contextRunner =
            bare.withConfiguration(AutoConfigurations.of(DataRedisAutoConfiguration.class));

    @Test
    void withoutAPolicyOnRedisThereAreNoBeansOfRedis() {
        contextRunner.run(context -> assertThat(context)
                .hasSingleBean(BucketStore.class)
                .doesNotHaveBean(RedisStorage.class)
                .doesNotHaveBean(Deadline.class)
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
    void theApplicationOrAPolicyEnablesRedis(String property) {
        contextRunner
                .withPropertyValues("ratelimit.policies.other.rate=2/1s", property)
                .run(context -> assertThat(context.getBean(BucketStore.class)).isInstanceOf(RoutingBucketStore.class));
    }

    @ParameterizedTest
    @ValueSource(strings = {"RATELIMIT_POLICIES_API_BACKEND", "RATELIMIT_POLICIES_PER_USER_BACKEND"})
    void anEnvironmentVariableEnablesRedisForAPolicy(String variable) {
        String variables = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
        contextRunner
                .withPropertyValues("ratelimit.policies.per-user.rate=2/1s")
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .replace(variables, new SystemEnvironmentPropertySource(variables, Map.of(variable, "redis"))))
                .run(context -> assertThat(context.getBean(BucketStore.class)).isInstanceOf(RoutingBucketStore.class));
    }

    @Test
    void theApplicationsOwnStoreReplacesRedis() {
        BucketStore own = BucketStore.local(new SystemTimeSource());
        contextRunner
                .withPropertyValues("ratelimit.backend=redis")
                .withBean(BucketStore.class, () -> own)
                .withBean(Injected.class)
                .run(context -> assertThat(context)
                        .doesNotHaveBean(RedisStorage.class)
                        .getBean(Injected.class)
                        .isEqualTo(new Injected(own)));
    }

    /** A bean that a bucket store is injected into. */
    record Injected(BucketStore store) {}

    @Test
    void withoutAConnectionFactoryTheFailureNamesTheCorrection() {
        bare.withPropertyValues("ratelimit.backend=redis")
                .run(context -> assertFailure(
                        context,
                        "'backend: redis' is set, but there is not exactly one RedisConnectionFactory with the"
                                + " address of Redis.",
                        "Add 'spring-boot-starter-data-redis' and set 'spring.data.redis.host', or declare one bean of the"
                                + " type LettuceConnectionFactory as primary."));
    }

    /** A connection factory of another client than Lettuce, such as Jedis or Redisson. */
    private final RedisConnectionFactory other = (RedisConnectionFactory) Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {RedisConnectionFactory.class},
            (proxy, method, args) -> method.getName().equals("equals") ? proxy == args[0] : null);

    /** As beside Redisson's starter, also if its factory is primary. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theFactoryOfLettuceIsUsedBesideThatOfAnotherClient(boolean primary) {
        bare.withPropertyValues("ratelimit.backend=redis")
                .withBean(RedisConnectionFactory.class, () -> other, definition -> definition.setPrimary(primary))
                .withBean(LettuceConnectionFactory.class, () -> new LettuceConnectionFactory("127.0.0.1", 1))
                .run(context -> assertThat(context).hasSingleBean(RedisStorage.class));
    }

    @Test
    void anotherClientThanLettuceIsRejected() {
        bare.withPropertyValues("ratelimit.backend=redis")
                .withBean(RedisConnectionFactory.class, () -> other)
                .run(context -> assertFailure(
                        context,
                        "'backend: redis' is set and needs Lettuce, but the RedisConnectionFactory is a "
                                + other.getClass().getSimpleName() + ".",
                        "Declare a bean of the type LettuceConnectionFactory for the limits; the other one may stay."
                                + " In place of Jedis, you can set 'spring.data.redis.client-type: lettuce'."));
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
                        "Set 'ratelimit.redis.strategy: script', or configure a single server or Sentinel."));
    }

    @Test
    void policiesInTwoSharedPlacesAreRefused() {
        contextRunner
                .withConfiguration(AutoConfigurations.of(RateLimitJdbcAutoConfiguration.class))
                .withBean(DataSource.class, SimpleDriverDataSource::new)
                .withPropertyValues(
                        "ratelimit.backend=jdbc",
                        "ratelimit.policies.other.rate=2/1s",
                        "ratelimit.policies.other.backend=redis")
                .run(context -> assertFailure(
                        context,
                        "Some policies set 'backend: redis' and others 'backend: jdbc', but an application shares limits"
                                + " in one place.",
                        "Set the same shared backend for all policies, beside 'local'."));
    }

    /** A fixed list doesn't show the primary after a failover. */
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
                "'backend: redis' is set, and Redis is configured as a fixed list of a primary and its replicas: the list"
                        + " doesn't show which of them is the primary after a failover.",
                "Set 'spring.data.redis.host' (an address that leads to the primary), or configure Sentinel or a"
                        + " cluster, instead of 'spring.data.redis.masterreplica.nodes'.");
    }

    @Test
    void withoutItsAutoConfigurationTheStartFails() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
                .withPropertyValues("ratelimit.policies.api.rate=2/1s", "ratelimit.policies.api.backend=redis")
                .run(context -> assertFailure(
                        context,
                        "Limits need Redis ('backend: redis'), but 'RateLimitRedisAutoConfiguration' is missing: instances"
                                + " would share nothing.",
                        "Don't exclude 'RateLimitRedisAutoConfiguration', or set 'ratelimit.backend: local'. If the"
                                + " application is processed ahead of time, set 'backend: redis' for the build too."));
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
