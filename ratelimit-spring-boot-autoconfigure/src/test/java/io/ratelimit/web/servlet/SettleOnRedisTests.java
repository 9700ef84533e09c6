package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import io.ratelimit.redis.TestRedis;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import redis.embedded.RedisServer;

/** Requests that are settled, with buckets in Redis, by both strategies. */
@Tag("slow")
class SettleOnRedisTests {

    private static final int PORT = TestRedis.freePort();

    @AutoClose("stop")
    private static final RedisServer redis = TestRedis.serverAt(PORT);

    private static TestServer serverOn(String strategy) {
        return TestServer.open(onRedis(PORT, strategy), SettleContract.Application.class);
    }

    private static String onRedis(int port, String strategy) {
        return """
                spring.application.name: settle-%2$s
                spring.data.redis: { host: 127.0.0.1, port: %1$d }
                ratelimit.backend: redis
                ratelimit.redis: { strategy: %2$s, timeout: 5s }
                """.formatted(port, strategy) + SettleContract.YAML;
    }

    @Nested
    class ByScript extends SettleContract {

        @RegisterExtension
        static final TestServer server = serverOn("script");

        @Override
        TestServer server() {
            return server;
        }
    }

    @Nested
    class ByTransaction extends SettleContract {

        @RegisterExtension
        static final TestServer server = serverOn("transaction");

        @Override
        TestServer server() {
            return server;
        }
    }

    /** The response has been written, and the tokens stay taken. */
    @Test
    void ifRedisFailsAfterTheDecisionTheEstimateStands() {
        int port = TestRedis.freePort();
        RedisServer failing = TestRedis.serverAt(port);
        try (TestServer server = TestServer.open(
                        onRedis(port, "script"), SettleContract.Application.class, StopsRedis.class)
                .start()) {
            server.bean(StopsRedis.class).redis = failing;
            server.refill();
            server.bean(Throttlers.class).reset("code");
            assertThat(server.available("code")).isEqualTo(100);
            assertThat(server.http().get("/code/stops").status()).isEqualTo(200);
            assertThat(server.bean(SettleContract.Events.class).events).containsExactly("code BACKEND_FAILURE");
        }
    }

    @RestController
    static class StopsRedis {

        volatile RedisServer redis;

        @GetMapping("/code/stops")
        String stops(ActualCost cost) {
            cost.settle("code", 3);
            try {
                redis.stop();
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
            return "stopped";
        }
    }
}
