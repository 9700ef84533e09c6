package io.ratelimit.stacks;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.migration.RunningApplication;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.data.redis.autoconfigure.DataRedisConnectionDetails;
import org.springframework.context.annotation.Bean;
import redis.embedded.RedisServer;
import redis.embedded.core.RedisServerBuilder;

/** The connection that Docker Compose and {@code @ServiceConnection} give: a bean in place of {@code spring.data.redis.*}. */
@Tag("slow")
class RedisConnectionDetailsTests {

    @Test
    void theLimitsUseTheConnectionDetails() throws IOException {
        RedisServerBuilder builder = RedisServer.newRedisServer()
                .port(freePort())
                .bind("127.0.0.1")
                .setting("save \"\"")
                .onShutdownForceStop(true);
        String binary = System.getenv("RATELIMIT_TEST_REDIS_BINARY");
        if (binary != null) {
            builder.executableProvider(() -> new File(binary));
        }
        RedisServer redis = builder.build();
        redis.start();
        String yaml = """
                spring:
                  application.name: shop
                  data.redis.port: 1
                details.port: %d
                ratelimit:
                  backend: redis
                  on-backend-failure: deny
                  redis.timeout: 10s
                  policies.site: { rate: 1/1h }
                """.formatted(redis.ports().get(0));
        try (RunningApplication one = RunningApplication.start(Application.class, yaml);
                RunningApplication other = RunningApplication.start(Application.class, yaml)) {
            assertThat(one.client().get("/").statusCode()).isEqualTo(404);
            assertThat(other.client().get("/").statusCode()).isEqualTo(429);
        } finally {
            redis.stop();
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        DataRedisConnectionDetails details(
                @org.springframework.beans.factory.annotation.Value("${details.port}") int port) {
            return new DataRedisConnectionDetails() {
                @Override
                public Standalone getStandalone() {
                    return Standalone.of("127.0.0.1", port);
                }
            };
        }
    }
}
