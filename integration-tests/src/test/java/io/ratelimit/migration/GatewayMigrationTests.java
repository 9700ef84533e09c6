package io.ratelimit.migration;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.gateway.filter.ratelimit.KeyResolver;
import org.springframework.context.annotation.Bean;
import reactor.core.publisher.Mono;
import redis.embedded.RedisServer;
import redis.embedded.core.RedisServerBuilder;

/** The example of {@code docs/migrating/spring-cloud-gateway.md}: both gateways, one Redis and one service behind them. */
@Tag("slow")
class GatewayMigrationTests {

    private static final MigrationPage PAGE = MigrationPage.of("spring-cloud-gateway");

    private static RedisServer redis;
    private static HttpServer orders;

    @BeforeAll
    static void start() throws IOException {
        RedisServerBuilder builder = RedisServer.newRedisServer()
                .port(freePort())
                .bind("127.0.0.1")
                .setting("save \"\"")
                .onShutdownForceStop(true);
        String binary = System.getenv("RATELIMIT_TEST_REDIS_BINARY");
        if (binary != null) {
            builder.executableProvider(() -> new File(binary));
        }
        redis = builder.build();
        redis.start();
        orders = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        orders.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        orders.start();
    }

    @AfterAll
    static void stop() throws IOException {
        orders.stop(0);
        redis.stop();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @Test
    void aLimitedRouteIsAPolicyWithItsPaths() {
        try (RunningApplication before = RunningApplication.start(
                WebApplicationType.REACTIVE,
                ReactiveGateway.class,
                PAGE.before("A limit for each API key of a route"),
                ordersUri(),
                redisPort(),
                "ratelimit.enabled=false",
                "spring.cloud.gateway.server.webflux.enabled=true",
                "spring.autoconfigure.exclude=")) {
            Client client = before.client();
            assertThat(client.get("/orders/1", "X-Api-Key", "alice").headers().firstValue("X-RateLimit-Remaining"))
                    .hasValue("2400");
            HttpResponse<String> rejection = theSameAnswers(before);
            assertThat(rejection.headers().map()).doesNotContainKey("Retry-After");
            assertThat(rejection.body()).isEmpty();
        }
        try (RunningApplication after = RunningApplication.start(
                MvcGateway.class,
                PAGE.after("A limit for each API key of a route"),
                ordersUri(),
                redisPort(),
                "ratelimit.redis.timeout=5s")) {
            Client client = after.client();
            assertThat(client.get("/orders/1", "X-Api-Key", "alice").headers().map())
                    .doesNotContainKey("RateLimit");
            HttpResponse<String> rejection = theSameAnswers(after);
            assertThat(rejection.headers().firstValueAsLong("Retry-After").orElse(0))
                    .isBetween(600L, 1200L);
            assertThat(rejection.body()).contains("\"violated-policies\":[\"orders\"]");
        }
    }

    /** Returns the rejection of the fourth request of alice; the first was sent before. */
    private static HttpResponse<String> theSameAnswers(RunningApplication gateway) {
        Client client = gateway.client();
        assertThat(client.statuses(3, "/orders/1", "X-Api-Key", "alice")).containsExactly(200, 200, 429);
        assertThat(client.statuses(1, "/orders/1", "X-Api-Key", "bob")).containsExactly(200);
        assertThat(client.statuses(1, "/orders/1")).containsExactly(403);
        // On another connection, since the reactive gateway may leave that of a 403 unread.
        return gateway.client().get("/orders/2", "X-Api-Key", "alice");
    }

    private static String ordersUri() {
        return "orders.uri=http://127.0.0.1:" + orders.getAddress().getPort();
    }

    private static String redisPort() {
        return "spring.data.redis.port=" + redis.ports().get(0);
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class ReactiveGateway {

        @Bean
        KeyResolver apiKey() {
            return exchange ->
                    Mono.justOrEmpty(exchange.getRequest().getHeaders().getFirst("X-Api-Key"));
        }
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class MvcGateway {}
}
