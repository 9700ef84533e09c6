package io.ratelimit.web.servlet.rejection;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.web.servlet.BasicSecurity;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpClient.Version;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Primary;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.RequestContextHolder;

/** Delayed rejections over HTTP, each test on its own server. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
@Tag("timed")
class DelayedRejectionServerTests {

    private static final String YAML = """
            ratelimit:
              policies:
                early: { key: ip, rate: 1/1h, paths: /early, rejection-delay: 2s }
                late: { key: user, rate: 1/1h, paths: /late, rejection-delay: 2s }
                prompt: { key: user, rate: 1/1h, paths: /prompt }
            """;

    @Test
    void atMostAThousandWaitAndHoldNoThread() {
        String fourThreads = YAML + "\nserver.tomcat.threads: { max: 4, min-spare: 4 }";
        try (TestServer server = TestServer.open(fourThreads, Api.class).start()) {
            server.http().get("/early");
            List<Connection> waiting = Stream.generate(() -> ask(server, "/early"))
                    .limit(DelayedRejections.MAX_WAITING)
                    .toList();
            await().until(() -> waiting(server) == 1000);

            for (int i = 0; i < 10; i++) {
                assertThat(server.http().get("/early").header("X-RetryAfterMs"))
                        .as("at once")
                        .isEqualTo("3600000");
                assertThat(server.http().get("/free").body()).isEqualTo("free");
            }

            server.advance(Duration.ofSeconds(2));
            assertThat(waiting)
                    .allSatisfy(connection -> assertThat(connection.read().header("X-RetryAfterMs"))
                            .isEqualTo("3598000"));
            await().until(() -> waiting(server) == 0);
            waiting.forEach(Connection::close);
        }
    }

    @Test
    void aPlaceThatIsFreeIsTakenAgain() {
        try (TestServer server = TestServer.open(YAML, Api.class).start()) {
            server.http().get("/early");
            List<Connection> waiting =
                    Stream.generate(() -> ask(server, "/early")).limit(1000).toList();
            await().until(() -> waiting(server) == 1000);
            waiting.forEach(Connection::close);
            server.advance(Duration.ofSeconds(2));
            await().until(() -> waiting(server) == 0);
            try (Connection next = ask(server, "/early")) {
                await().until(() -> waiting(server) == 1);
                server.advance(Duration.ofSeconds(2));
                assertThat(next.read().status()).isEqualTo(429);
            }
        }
    }

    @Test
    void springSecurityDoesNotRunAgain() {
        try (TestServer server =
                TestServer.secured(YAML, Api.class, BasicSecurity.class).start()) {
            assertThat(server.http().get("/early").status()).isEqualTo(401);
            assertThat(late(server, "/early").status()).isEqualTo(429);

            assertThat(server.http().get("/late", basic("alice")).status()).isEqualTo(200);
            Response refusal = late(server, "/late", basic("alice"));
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.body()).contains("[\"late\"]");
            server.http().get("/prompt", basic("alice"));
            assertThat(refusal.names())
                    .as("Spring Security's among them")
                    .containsAll(server.http().get("/prompt", basic("alice")).names());
            assertThat(refusal.header("Cache-Control")).isEqualTo("no-store");
        }
    }

    @Test
    void aHandlerOfTheUserIsDelayed() {
        try (TestServer server = TestServer.open(YAML, Api.class, Teapot.class).start()) {
            server.http().get("/early");
            Response refusal = late(server, "/early?q=%20");
            assertThat(refusal.status()).isEqualTo(418);
            assertThat(refusal.body()).isEqualTo("GET /early?q=%20 early 3598000 true");
        }
    }

    @Test
    void aHandlerThatFailsFreesItsPlace(CapturedOutput output) {
        try (TestServer server = TestServer.open(YAML, Api.class, Clumsy.class).start()) {
            server.http().get("/early");
            assertThat(late(server, "/early").status()).isEqualTo(500);
            await().until(() -> waiting(server) == 0);
            assertThat(output.getAll()).contains("clumsy");
        }
    }

    @ParameterizedTest
    @CsvSource({"/app, /app/early", "/app, /%61pp/early", "/, /early"})
    void belowAContextPath(String context, String target) {
        String yaml = YAML + (context.equals("/") ? "" : "\nserver.servlet.context-path: " + context);
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            server.http().get(target);
            assertThat(late(server, target).body()).contains("[\"early\"]");
        }
    }

    /** A container can't dispatch to the path of this request. */
    @Test
    void atTheRootOfTheContext() {
        String yaml = YAML.replace("paths: /early, ", "")
                + "\nserver: { servlet.context-path: /app, tomcat.redirect-context-root: false }";
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            server.http().get("/app");
            assertThat(late(server, "/app").body()).contains("[\"early\"]");
        }
    }

    @Test
    void belowThePathOfTheServlet() {
        String yaml = YAML.replace("/early", "/mvc/early") + "\nspring.mvc.servlet.path: /mvc";
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            server.http().get("/mvc/early");
            assertThat(late(server, "/mvc/early").body()).contains("[\"early\"]");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"graceful", "immediate"})
    void whenTheApplicationStopsAllAreAnswered(String shutdown) {
        TestServer server = TestServer.open(YAML + "\nserver.shutdown: " + shutdown, Api.class)
                .start();
        server.http().get("/early");
        List<Connection> waiting =
                Stream.generate(() -> ask(server, "/early")).limit(50).toList();
        await().until(() -> waiting(server) == 50);

        long start = System.nanoTime();
        server.close();

        assertThat(waiting)
                .allSatisfy(connection -> assertThat(connection.read().status()).isEqualTo(429));
        assertThat(Duration.ofNanos(System.nanoTime() - start))
                .as("without waiting for what stands still")
                .isLessThan(Duration.ofSeconds(15));
        waiting.forEach(Connection::close);
    }

    /** Uses the real clock and a short delay, which often ends before the rejecting thread has left the filters. */
    @Test
    void aDelayMayBeShorterThanTheWayBack() {
        String yaml = YAML.replace("paths: /early, rejection-delay: 2s", "paths: /early, rejection-delay: 1us");
        try (TestServer server = TestServer.secured(yaml, Api.class, BasicSecurity.class, RealTime.class)
                .start()) {
            server.http().get("/early");
            List<Connection> connections =
                    Stream.generate(() -> server.http().open()).limit(8).toList();
            for (int i = 0; i < 250; i++) {
                connections.forEach(connection -> connection.write(RawHttp.text("GET", "/early")));
                assertThat(connections).allSatisfy(connection -> {
                    Response refusal = connection.read();
                    assertThat(refusal.status()).isEqualTo(429);
                    assertThat(refusal.body()).endsWith("}");
                });
            }
            connections.forEach(Connection::close);
            await().until(() -> waiting(server) == 0);
        }
    }

    @Test
    void theAnswerIsNotEarlyOnTheMachinesClock() {
        String yaml = YAML.replace("paths: /early, rejection-delay: 2s", "paths: /early, rejection-delay: 200ms");
        try (TestServer server =
                TestServer.open(yaml, Api.class, RealTime.class).start()) {
            server.http().get("/early");
            long start = System.nanoTime();
            Response refusal = server.http().get("/early");
            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(200_000_000L);
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(Long.parseLong(refusal.header("X-RetryAfterMs"))).isLessThanOrEqualTo(3_599_800);
        }
    }

    /** Over HTTP/2 a client can cancel a request. */
    @Test
    void aStreamThatIsCancelledFreesItsPlaceAtOnce(CapturedOutput output) throws Exception {
        try (TestServer server = TestServer.open(YAML + "\nserver.http2.enabled: true", Api.class)
                .start()) {
            HttpClient client = HttpClient.newBuilder().version(Version.HTTP_2).build();
            HttpResponse<String> first = client.send(request(server), BodyHandlers.ofString());
            assertThat(first.version()).isEqualTo(Version.HTTP_2);
            assertThat(first.statusCode()).isEqualTo(200);
            CompletableFuture<?> gone = client.sendAsync(request(server), BodyHandlers.ofString());
            CompletableFuture<HttpResponse<String>> patient =
                    client.sendAsync(request(server), BodyHandlers.ofString());
            await().until(() -> waiting(server) == 2);
            int logged = output.getAll().length();

            gone.cancel(true);
            await().until(() -> waiting(server) == 1);

            server.advance(Duration.ofSeconds(2));
            assertThat(patient.get().statusCode()).isEqualTo(429);
            assertThat(output.getAll().substring(logged)).isEmpty();
        }
    }

    private static HttpRequest request(TestServer server) {
        return HttpRequest.newBuilder(
                        URI.create("http://127.0.0.1:" + server.http().port() + "/early"))
                .build();
    }

    private static Response late(TestServer server, String target, String... headers) {
        DelayedRejectionTests.atOnce().until(() -> waiting(server) == 0);
        int before = server.bean(ManualTimeSource.class).waiting();
        try (Connection connection = server.http().open()) {
            connection.write(RawHttp.text("GET", target, headers));
            DelayedRejectionTests.atOnce()
                    .until(() -> server.bean(ManualTimeSource.class).waiting() == before + 1);
            server.advance(Duration.ofSeconds(2));
            return connection.read();
        }
    }

    private static Connection ask(TestServer server, String target) {
        return server.http().open().write(RawHttp.text("GET", target));
    }

    private static int waiting(TestServer server) {
        return server.bean(DelayedRejections.class).waiting();
    }

    @RestController
    static class Api {

        @GetMapping({"/early", "/late", "/prompt"})
        String limited() {
            return "limited";
        }

        @GetMapping("/free")
        String free() {
            return "free";
        }
    }

    static class RealTime {

        @Bean
        @Primary
        SystemTimeSource realTime() {
            return new SystemTimeSource();
        }
    }

    static class Teapot {

        @Bean
        RejectionHandler teapot() {
            return (request, response, decision) -> {
                response.setStatus(418);
                response.getWriter()
                        .write(request.getMethod() + " " + request.getRequestURI() + "?" + request.getQueryString()
                                + " " + decision.denials().get(0).policy().name()
                                + " " + decision.retryAfter().toMillis()
                                + " " + (RequestContextHolder.getRequestAttributes() != null));
            };
        }
    }

    static class Clumsy {

        @Bean
        RejectionHandler clumsy() {
            return (request, response, decision) -> {
                throw new IllegalArgumentException("clumsy");
            };
        }
    }
}
