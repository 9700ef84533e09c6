package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Backend.Condition;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An application that is stopped and started again, as for a CRaC checkpoint or a paused context of a test. */
@Tag("slow")
class RedisLifecycleTests {

    @AutoClose
    private static final RedisProcess redis = RedisProcess.started();

    private static final String YAML = """
            ratelimit:
              backend: redis
              redis: { strategy: %s, timeout: 5s }
              policies:
                %s: { key: ip, rate: 5/1d }
            """;

    /** The connections to Redis, except for the one that asks. */
    private static long connections() {
        return redis.ask(commands -> commands.clientList().lines().count()) - 1;
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aStoppedApplicationHasNoConnectionAndARestartedOneCountsOn(String strategy) {
        try (RedisApplication application = RedisApplication.start(redis.port(), YAML.formatted(strategy, strategy))) {
            for (int round = 0; round < 2; round++) {
                assertThat(application.status("/a")).isEqualTo(200);
                assertThat(application.status("/a")).isEqualTo(200);
                assertThat(connections()).isPositive();

                application.stop();
                await().untilAsserted(() -> assertThat(connections()).isZero());
                application.startAgain();
            }
            assertThat(application.status("/a")).isEqualTo(200);
            assertThat(application.status("/a")).isEqualTo(429);
            assertThat(application.condition()).isEqualTo(Condition.UP);
        }
    }

    @Test
    void aRestartWithoutRedisCountsInMemoryUntilRedisReturns() {
        try (RedisProcess own = RedisProcess.started();
                RedisApplication application = RedisApplication.start(own.port(), YAML.formatted("script", "api"))) {
            application.stop();
            own.kill();
            application.startAgain();
            assertThat(application.status("/a")).isEqualTo(200);
            assertThat(application.condition()).isEqualTo(Condition.DOWN);

            own.start();
            await().untilAsserted(() -> {
                application.status("/a");
                assertThat(application.condition()).isEqualTo(Condition.UP);
            });
        }
    }

    @Test
    void aRedisThatHangsAfterARestartIsUnavailable() {
        try (RedisProcess own = RedisProcess.started();
                RedisApplication application = RedisApplication.start(
                        own.port(), YAML.formatted("script", "api").replace("5s", "100ms"))) {
            application.stop();
            application.startAgain();
            assertThat(application.status("/a")).isEqualTo(200);

            own.freeze();
            await().untilAsserted(() -> {
                application.status("/a");
                assertThat(application.condition()).isEqualTo(Condition.DOWN);
            });
        }
    }
}
