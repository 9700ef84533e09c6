package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import io.lettuce.core.resource.NettyCustomizer;
import io.ratelimit.redis.RedisClientFactory;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.lettuce.RedisCredentialsProviderFactory;

class LettuceClientsTests {

    @Test
    void aLostConnectionIsTriedFourTimesASecondHoweverLongItIsGone() {
        LettuceConnectionFactory application = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", 1), LettuceClientConfiguration.defaultConfiguration());
        try (RedisClientFactory.Client client = client(application)) {
            Delay delay = client.get().getResources().reconnectDelay();
            assertThat(delay.createDelay(1)).isEqualTo(Duration.ofMillis(250));
            assertThat(delay.createDelay(100)).isEqualTo(Duration.ofMillis(250));
        }
    }

    @Test
    void theThreadsOfTheApplicationAreUsedAndOutliveOurs() {
        ClientResources threads = ClientResources.create();
        LettuceConnectionFactory application = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", 1),
                LettuceClientConfiguration.builder().clientResources(threads).build());
        try (RedisClientFactory.Client client = client(application)) {
            assertThat(client.get().getResources().eventExecutorGroup()).isSameAs(threads.eventExecutorGroup());
        }
        assertThat(threads.eventExecutorGroup().isShuttingDown()).isFalse();
        threads.shutdown().syncUninterruptibly();
    }

    @Test
    void threadsOfOurOwnEndWithTheConnections() {
        LettuceConnectionFactory application = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", 1), LettuceClientConfiguration.defaultConfiguration());
        RedisClientFactory.Client client = client(application);
        ClientResources threads = client.get().getResources();
        client.close();
        assertThat(threads.eventExecutorGroup().isShuttingDown()).isTrue();
    }

    /** Such as the tokens of a cloud's users, which expire. */
    @Test
    void theNameTheCredentialsAndTheTlsOfTheApplicationAreUsed() {
        RedisCredentialsProviderFactory credentials = new RedisCredentialsProviderFactory() {};
        LettuceClientConfiguration application = LettuceClientConfiguration.builder()
                .clientName("shop")
                .redisCredentialsProviderFactory(credentials)
                .useSsl()
                .startTls()
                .build();
        LettuceClientConfiguration limiter = configuration(application);
        assertThat(limiter.getClientName()).hasValue("shop");
        assertThat(limiter.getRedisCredentialsProviderFactory()).hasValue(credentials);
        assertThat(limiter.isUseSsl()).isTrue();
        assertThat(limiter.isStartTls()).isTrue();
    }

    /** The connection to a frozen node gives no sign of a failover. */
    @Test
    void theNodesOfAClusterAreRefreshedEveryFiveSecondsOrAsOftenAsTheApplicationDoes() {
        assertThat(refreshPeriod(ClusterTopologyRefreshOptions.create())).isEqualTo(Duration.ofSeconds(5));
        assertThat(refreshPeriod(refreshed(Duration.ofMinutes(1)))).isEqualTo(Duration.ofSeconds(5));
        assertThat(refreshPeriod(refreshed(Duration.ofSeconds(2)))).isEqualTo(Duration.ofSeconds(2));
    }

    private static RedisClientFactory.Client client(LettuceConnectionFactory application) {
        return new LettuceClients(application).create(new NettyCustomizer() {});
    }

    private static ClusterTopologyRefreshOptions refreshed(Duration period) {
        return ClusterTopologyRefreshOptions.builder()
                .enablePeriodicRefresh(period)
                .build();
    }

    private static Duration refreshPeriod(ClusterTopologyRefreshOptions ofApplication) {
        LettuceClientConfiguration application = LettuceClientConfiguration.builder()
                .clientOptions(ClusterClientOptions.builder()
                        .topologyRefreshOptions(ofApplication)
                        .build())
                .build();
        ClusterClientOptions limiter = (ClusterClientOptions)
                configuration(application).getClientOptions().orElseThrow();
        assertThat(limiter.getTopologyRefreshOptions().isPeriodicRefreshEnabled())
                .isTrue();
        assertThat(limiter.getTopologyRefreshOptions().getAdaptiveRefreshTriggers())
                .isNotEmpty();
        return limiter.getTopologyRefreshOptions().getRefreshPeriod();
    }

    private static LettuceClientConfiguration configuration(LettuceClientConfiguration application) {
        ClientResources threads = ClientResources.create();
        try {
            return new LettuceClients(new LettuceConnectionFactory(new RedisStandaloneConfiguration(), application))
                    .configuration(threads);
        } finally {
            threads.shutdown().syncUninterruptibly();
        }
    }
}
