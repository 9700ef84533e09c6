package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Connection;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletContext;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.Endpoint;
import jakarta.websocket.EndpointConfig;
import jakarta.websocket.Session;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpointConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.CookieValue;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** Features of HTTP and Tomcat by which a request could reach its handler and no policy. */
@Timeout(60)
class WaysAroundTests {

    private static final String YAML = """
            server.http2.enabled: true
            server.tomcat.encoded-solidus-handling: %s
            spring.mvc.pathmatch.matching-strategy: %s
            ratelimit:
              policies:
                login: { rate: 5/1d, paths: /api/login }
                user: { key: path-variable:id, on-missing-key: skip, rate: 5/1d, paths: "/users/*" }
                cookie: { key: cookie:who, on-missing-key: skip, rate: 5/1d, paths: /cookie }
            """;

    @RegisterExtension
    private static final TestServer server = server("reject", "path_pattern_parser");

    private static TestServer server(String solidus, String matcher) {
        return TestServer.open(YAML.formatted(solidus, matcher), Api.class, Sockets.class);
    }

    @ParameterizedTest
    @CsvSource({
        "decode, path_pattern_parser",
        "decode, ant_path_matcher",
        "pass_through, path_pattern_parser",
        "pass_through, ant_path_matcher"
    })
    void aPathInAnotherSpellingIsNoWayRound(String solidus, String matcher) {
        try (TestServer server = server(solidus, matcher).start()) {
            anEncodedSlashIsNoWayRound(server);
            aPathVariableIsOneKeyInEachSpelling(server);
        }
    }

    private static void anEncodedSlashIsNoWayRound(TestServer server) {
        List<String> reached = new ArrayList<>();
        for (String target : List.of(
                "/api/login",
                "/api%2Flogin",
                "/api%2flogin",
                "%2Fapi/login",
                "/%2Fapi/login",
                "/api/%2Flogin",
                "/api%2F%2Flogin",
                "/x%2F../api/login",
                "/x/..%2Fapi/login",
                "/api;a=b%2Flogin",
                "/api%2Flogin;a=%2F",
                "/api/x%2F..%2Flogin",
                "/api/.%2Flogin",
                "http://localhost/api/login",
                "http://localhost/api%2Flogin",
                "http://other.example:99/api;x/login;y")) {
            server.refill();
            if (server.http().get(target).body().equals("login")) {
                reached.add(target);
                assertThat(server.available("login")).as(target).isEqualTo(4);
            }
        }
        assertThat(reached).contains("/api/login", "http://localhost/api/login");
    }

    private static void aPathVariableIsOneKeyInEachSpelling(TestServer server) {
        List<String> reached = new ArrayList<>();
        for (String target : List.of(
                "/users/alice",
                "/users/%61lice",
                "/users/alice;a=b",
                "/users/alice;",
                "/users;x/alice",
                "/users/./alice",
                "/users/x/../alice",
                "/%75sers/alice",
                "/users%2Falice",
                "//users/alice",
                "/users//alice",
                "/users/alice?id=bob")) {
            server.refill();
            if (server.http().get(target).body().equals("user alice")) {
                reached.add(target);
                assertThat(server.available("user", "alice")).as(target).isEqualTo(4);
            }
        }
        assertThat(reached).contains("/users/alice", "/users/%61lice", "/users/alice;a=b");
    }

    @Test
    void theHandshakeOfAWebSocketIsCharged() {
        List<Integer> statuses = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            try (Connection connection = server.http().open()) {
                connection.write(RawHttp.text(
                        "GET",
                        "/api/login",
                        "Upgrade: websocket",
                        "Connection: Upgrade",
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                        "Sec-WebSocket-Version: 13"));
                statuses.add(connection.readHead().status());
            }
        }
        assertThat(statuses).containsExactly(101, 101, 101, 101, 101, 429, 429);
    }

    @Test
    void aCookieThatIsSentTwiceIsTheOneOfTheHandler() {
        int reached = 0;
        for (int i = 0; i < 20; i++) {
            String both = i % 2 == 0 ? "who=alice; who=x" + i : "who=x" + i + "; who=alice";
            reached += server.http().get("/cookie", "Cookie: " + both).body().equals("cookie alice") ? 1 : 0;
        }
        assertThat(reached).isEqualTo(5);
        assertThat(server.available("cookie", "alice")).isZero();
    }

    @Test
    void pipelinedRequestsAreChargedOneByOne() {
        int before = server.bean(Api.class).logins.get();
        String chunked = "POST /api/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "2;name=value\r\nhi\r\n0\r\nX-Trailer: GET /api/login HTTP/1.1\r\n\r\n";
        try (Connection connection = server.http().open()) {
            connection.write(chunked.repeat(8));
            for (int i = 0; i < 5; i++) {
                assertThat(connection.read().body()).isEqualTo("hi");
            }
            for (int i = 5; i < 8; i++) {
                assertThat(connection.read().status()).isEqualTo(429);
            }
        }
        assertThat(server.bean(Api.class).logins).hasValue(before + 5);
    }

    @Test
    void manyStreamsOfHttp2AtOnceAreCharged() throws Exception {
        Api api = server.bean(Api.class);
        int before = api.logins.get();
        try (RawHttp2 http = new RawHttp2(server.http().port())) {
            for (String target : List.of("/api/login", "/api/login;a", "/api/%6cogin", "/x/../api/login")) {
                for (int i = 0; i < 10; i++) {
                    http.request(i % 2 == 0 ? "GET" : "HEAD", target);
                }
            }
            api.completedStreams.acquire(40);
            assertThat(api.logins).hasValue(before + 5);
        }
    }

    @RestController
    static class Api {

        final AtomicInteger logins = new AtomicInteger();

        /** Counts the requests of HTTP/2 alone, which one test sends: a request of another test may complete late. */
        final Semaphore completedStreams = new Semaphore(0);

        @GetMapping("/api/login")
        String login() {
            logins.incrementAndGet();
            return "login";
        }

        @PostMapping("/api/login")
        String post(@RequestBody String body) {
            logins.incrementAndGet();
            return body;
        }

        @GetMapping("/users/{id}")
        String user(@PathVariable String id) {
            return "user " + id;
        }

        @GetMapping("/cookie")
        String cookie(@CookieValue String who) {
            return "cookie " + who;
        }

        @Bean
        FilterRegistrationBean<Filter> completions() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                try {
                    chain.doFilter(request, response);
                } finally {
                    if (request.getProtocol().equals("HTTP/2.0")) {
                        completedStreams.release();
                    }
                }
            });
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return registration;
        }
    }

    static class Sockets {

        @Bean
        SmartInitializingSingleton sockets(ServletContext context) {
            return () -> {
                ServerContainer container = (ServerContainer) context.getAttribute(ServerContainer.class.getName());
                try {
                    container.addEndpoint(ServerEndpointConfig.Builder.create(Socket.class, "/api/login")
                            .build());
                } catch (DeploymentException impossible) {
                    throw new IllegalStateException(impossible);
                }
            };
        }

        public static class Socket extends Endpoint {

            @Override
            public void onOpen(Session session, EndpointConfig config) {}
        }
    }
}
