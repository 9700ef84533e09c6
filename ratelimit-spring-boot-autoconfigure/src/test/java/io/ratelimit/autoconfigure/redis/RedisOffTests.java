package io.ratelimit.autoconfigure.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.Throttlers;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.SocketTimeoutException;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A Redis that no enabled policy uses gets no connection. */
@Tag("slow")
class RedisOffTests {

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits, ratelimitdashboard, health
              endpoint.health.show-details: always
              health.redis.enabled: false
            ratelimit:
              %s
              policies:
                all: { rate: 1/1d, tiers: { pro: { rate: 2/1d } }, tier: "query:plan", max-wait: 1d, %s }
                here: { rate: 9/1d, backend: local }
            """;

    /** The server socket accepts no connection, but the operating system queues them. */
    @AutoClose
    private final ServerSocket port = listening();

    private static ServerSocket listening() {
        try {
            ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
            socket.setSoTimeout(1);
            return socket;
        } catch (IOException failed) {
            throw new IllegalStateException(failed);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "mode: off | backend: redis",
                "mode: off | mode: enforce, backend: redis",
                "mode: shadow | mode: off, backend: redis"
            })
    void noConnectionIsOpenedIfAllPoliciesOnRedisAreOff(String modes) {
        String[] parts = modes.split(" \\| ");
        try (RedisApplication application =
                RedisApplication.start(port.getLocalPort(), YAML.formatted(parts[0], parts[1]))) {
            assertThat(application.status("/a")).isEqualTo(200);
            assertThat(application
                            .bean(Throttlers.class)
                            .global("all")
                            .decide(2)
                            .allowed())
                    .isTrue();
            assertThat(application.get("/actuator/health").body()).contains("\"ratelimit\":{\"status\":\"UP\"}");
            assertThat(application.get("/actuator/ratelimits").body()).contains("\"rate\":\"2/1d\"");
            assertThat(application.get("/actuator/ratelimits/all?tier=pro").body())
                    .contains("\"mode\":\"off\"");
            assertThat(application.status("/actuator/ratelimitdashboard/data")).isEqualTo(200);
            for (String path : List.of("ratelimits", "ratelimits/all?tier=pro", "ratelimitdashboard/data", "health")) {
                assertThat(application.get("/actuator/" + path).body()).as(path).doesNotContain("\"condition\":\"UP\"");
            }
        }
        assertThatThrownBy(port::accept).isInstanceOf(SocketTimeoutException.class);
    }

    /** This proves that the test above would detect a connection. */
    @ParameterizedTest
    @ValueSource(strings = {"enforce", "shadow"})
    void otherwiseTheStartTriesIt(String mode) throws IOException {
        RedisApplication.start(port.getLocalPort(), YAML.formatted("mode: " + mode, "backend: redis"))
                .close();
        assertThat(port.accept()).isNotNull();
    }
}
