package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Backend.Condition;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** The log of an application while Redis is gone. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
@Tag("timed")
class OutageLogTests {

    @AutoClose
    private final RedisProcess redis = RedisProcess.started();

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void anOutageIsALineAndItsEndIsAnother(String strategy, CapturedOutput output) {
        String yaml = "ratelimit: { backend: redis, redis.strategy: " + strategy
                + ", policies: { all: { rate: 1000/1h } } }\nmanagement.endpoints.web.exposure.include: ratelimits\n";
        try (RedisApplication application = RedisApplication.start(redis.port(), yaml)) {
            application.awaitUp();
            int before = output.getAll().length();
            redis.kill();
            long gone = System.nanoTime();
            await().until(() -> application.status("/a") == 200
                    && application.condition() == Condition.DOWN
                    && System.nanoTime() - gone > 2_000_000_000L);
            redis.start();
            await().until(() -> application.status("/a") == 200 && application.condition() == Condition.UP);

            String log = output.getAll().substring(before);
            assertThat(log.lines().filter(line -> line.contains("Redis is ")))
                    .satisfiesExactly(
                            line -> assertThat(line).contains("WARN").contains("Redis is unavailable ("),
                            line -> assertThat(line).contains("INFO").contains("Redis is available again"));
            assertThat(log).doesNotContain(" i.l.", " io.lettuce.core.protocol", "\tat ");
        }
    }
}
