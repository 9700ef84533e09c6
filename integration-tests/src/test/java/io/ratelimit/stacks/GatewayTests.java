package io.ratelimit.stacks;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.migration.Client;
import io.ratelimit.migration.RunningApplication;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;

/** Spring Cloud Gateway Server WebMVC, before a service on another port. */
@Tag("slow")
class GatewayTests {

    private final List<String> arrived = new CopyOnWriteArrayList<>();
    private HttpServer service;

    @BeforeEach
    void start() throws IOException {
        service = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        service.createContext("/", exchange -> {
            arrived.add(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
                    + exchange.getRequestHeaders().getFirst("X-Tenant"));
            exchange.getResponseHeaders().add("X-Served-By", "orders");
            exchange.getResponseHeaders().add("RateLimit", "\"theirs\";r=7");
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        service.start();
    }

    @AfterEach
    void stop() {
        service.stop(0);
    }

    private RunningApplication gateway(String policies) {
        return RunningApplication.start(
                Gateway.class, """
                spring.cloud.gateway.server.webmvc.routes:
                  - id: orders
                    uri: http://127.0.0.1:%1$d
                    predicates: [ Path=/orders/** ]
                  - id: items
                    uri: http://127.0.0.1:%1$d
                    predicates: [ "Path=/shop/items/{item}", Method=GET ]
                    filters: [ StripPrefix=1, RemoveResponseHeader=RateLimit ]
                ratelimit.policies:
                %2$s""".formatted(service.getAddress().getPort(), policies.indent(2)));
    }

    @Test
    void aRejectedRequestDoesNotReachTheService() {
        try (RunningApplication gateway = gateway("orders: { key: ip, rate: 2/1h, paths: /orders/** }")) {
            Client client = gateway.client();

            HttpResponse<String> allowed = client.get("/orders/1?full=yes", "X-Tenant", "acme");
            assertThat(allowed.statusCode()).isEqualTo(200);
            assertThat(allowed.headers().firstValue("X-Served-By")).hasValue("orders");
            assertThat(allowed.headers().allValues("RateLimit-Policy")).containsExactly("\"orders\";q=2;w=3600");
            assertThat(client.get("/orders/2").statusCode()).isEqualTo(200);

            HttpResponse<String> rejection = client.get("/orders/3");
            assertThat(rejection.statusCode()).isEqualTo(429);
            assertThat(rejection.headers().firstValue("Retry-After")).hasValue("1800");
            assertThat(rejection.headers().map()).doesNotContainKey("X-Served-By");
            assertThat(arrived).containsExactly("GET /orders/1?full=yes acme", "GET /orders/2 null");

            assertThat(client.statuses(3, "/shop/items/1")).containsOnly(200);
            assertThat(arrived).hasSize(5).contains("GET /items/1 null");

            gateway.time().advance(Duration.ofMinutes(30));
            assertThat(client.get("/orders/3").statusCode()).isEqualTo(200);
        }
    }

    @Test
    void theEndpointIsThePatternOfTheRoute() {
        try (RunningApplication gateway = gateway("per-route: { key: endpoint, rate: 2/1h }")) {
            Client client = gateway.client();

            assertThat(client.get("/orders/1").statusCode()).isEqualTo(200);
            assertThat(client.get("/orders/2").statusCode()).isEqualTo(200);
            assertThat(client.get("/orders/3").statusCode()).isEqualTo(429);
            assertThat(client.get("/shop/items/1").statusCode()).isEqualTo(200);
            assertThat(client.get("/shop/items/2").statusCode()).isEqualTo(200);
            assertThat(client.get("/shop/items/3").statusCode()).isEqualTo(429);
        }
    }

    @Test
    void aPathVariableOfTheRouteIsAKey() {
        try (RunningApplication gateway =
                gateway("per-item: { key: path-variable:item, rate: 1/1h, paths: '/shop/items/{item}' }")) {
            Client client = gateway.client();

            assertThat(client.statuses(2, "/shop/items/1")).containsExactly(200, 429);
            assertThat(client.statuses(2, "/shop/items/2")).containsExactly(200, 429);
        }
    }

    @Test
    void theServicesOwnHeadersPassBesideTheGatewaysUnlessTheRouteRemovesThem() {
        try (RunningApplication gateway = gateway("all: { key: ip, rate: 2/1h }")) {
            Client client = gateway.client();

            assertThat(client.get("/orders/1").headers().allValues("RateLimit"))
                    .containsExactly("\"all\";r=1;t=1800", "\"theirs\";r=7");
            assertThat(client.get("/shop/items/1").headers().allValues("RateLimit"))
                    .containsExactly("\"all\";r=0;t=1800");
        }
    }

    @SpringBootConfiguration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Gateway {

        @Bean
        ManualTimeSource time() {
            return new ManualTimeSource();
        }
    }
}
