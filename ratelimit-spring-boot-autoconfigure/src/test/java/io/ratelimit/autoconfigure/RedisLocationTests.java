package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisSocketConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.RedisStaticMasterReplicaConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

class RedisLocationTests {

    static Stream<RedisConfiguration> configurations() {
        return Stream.of(
                new RedisStandaloneConfiguration("example.org", 7),
                new RedisSocketConfiguration("/tmp/redis.sock"),
                new RedisSentinelConfiguration().master("shop").sentinel("example.org", 7),
                new RedisClusterConfiguration().clusterNode("example.org", 7));
    }

    /** By the methods of the factory, a single server that was passed as any configuration looks like localhost. */
    @ParameterizedTest
    @MethodSource("configurations")
    void theLocationIsTheConfigurationOfTheFactory(RedisConfiguration where) {
        LettuceConnectionFactory application = new LettuceConnectionFactory(where);

        assertThat(LettuceClients.location(application)).isSameAs(where);
        assertThat(RedisConfiguration.isStaticMasterReplicaConfiguration(LettuceClients.location(application)))
                .isFalse();
    }

    @Test
    void aServerByTypeToo() {
        RedisStandaloneConfiguration where = new RedisStandaloneConfiguration("example.org", 7);

        assertThat(LettuceClients.location(new LettuceConnectionFactory(where))).isSameAs(where);
    }

    @Test
    void aFixedListIsNoPlaceToWriteTo() {
        LettuceConnectionFactory application =
                new LettuceConnectionFactory(new RedisStaticMasterReplicaConfiguration("example.org", 7));

        assertThat(RedisConfiguration.isStaticMasterReplicaConfiguration(LettuceClients.location(application)))
                .isTrue();
    }
}
