package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.math.BigInteger;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** Clients that try to influence the settlement of their requests, over plain sockets. */
@Tag("slow")
@Tag("timed")
class SettleAttackTests {

    private static final String YAML = """
            server.compression: { enabled: true, mime-types: text/plain, min-response-size: 1KB }
            ratelimit:
              policies:
                attribute: { rate: 100/1d, cost: 10, settle: "attribute:tokens", paths: /attribute/** }
                header: { rate: 100/1d, cost: 10, settle: "response-header:X-Tokens", paths: /header/** }
                code: { rate: 1000000/1d, cost: 10, settle: code, paths: /code/** }
                size: { rate: 100000/1d, cost: 10, settle: "response-header:Content-Length", paths: /size }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Application.class);

    @BeforeEach
    void empty() {
        Throttlers throttlers = server.bean(Throttlers.class);
        throttlers
                .all()
                .forEach(throttler -> throttlers.reset(throttler.policy().name()));
        server.bean(SettleContract.Events.class).events.clear();
    }

    private static List<String> events() {
        return server.bean(SettleContract.Events.class).events;
    }

    private static void hasLeft(String policy, long left) {
        server.awaitEnds();
        assertThat(server.available(policy)).isEqualTo(left);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "GET /attribute/none?tokens=0 HTTP/1.1\r\ntokens: 0\r\nCookie: tokens=0\r\n",
                "GET /attribute/none;tokens=0 HTTP/1.1\r\nX-Tokens: 0\r\n",
                "HEAD /attribute/none HTTP/1.1\r\nX-Tokens: 0\r\n",
                "POST /attribute/none HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n"
                        + "\r\ntokens=0",
                "POST /attribute/none HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: tokens\r\n\r\n"
                        + "1\r\na\r\n0\r\ntokens: 0\r\nX-Tokens: 0\r\n",
                "OPTIONS /attribute/none HTTP/1.1\r\ntokens: 0\r\n",
                "BREW /attribute/none HTTP/1.1\r\ntokens: 0\r\n",
                "GET /attribute/unknown?tokens=0 HTTP/1.1\r\ntokens: 0\r\n"
            })
    void nothingThatTheClientSendsIsAnActualCost(String request) {
        for (String policy : List.of("attribute", "header")) {
            String sent = request.replace("/attribute/", "/" + policy + "/")
                    .replaceFirst("\r\n", "\r\nHost: localhost\r\nConnection: close\r\n");
            try (RawHttp.Connection connection = server.http().open()) {
                connection.write(sent + "\r\n");
                assertThat(connection.readHead().status()).as(sent).isNotEqualTo(400);
            } catch (Exception failed) {
                throw new AssertionError(sent, failed);
            }
            hasLeft(policy, 90);
        }
        assertThat(events()).isEmpty();
    }

    @Test
    void pipelinedRequestsAreSettledEachByItsOwnCost() throws Exception {
        try (RawHttp.Connection connection = server.http().open()) {
            connection.write(RawHttp.text("GET", "/attribute/number/3")
                    + RawHttp.text("GET", "/attribute/none")
                    + RawHttp.text("GET", "/header/number/0")
                    + RawHttp.text("GET", "/header/none"));
            for (int i = 0; i < 4; i++) {
                assertThat(connection.read().status()).isEqualTo(200);
            }
        }
        hasLeft("attribute", 87);
        hasLeft("header", 90);
        assertThat(events()).containsExactlyInAnyOrder("attribute SETTLED", "header SETTLED");
    }

    @Test
    void aLateCostIsNotThatOfTheNextRequestOnTheConnection() throws Exception {
        try (RawHttp.Connection connection = server.http().open()) {
            assertThat(connection.get("/code/keep").status()).isEqualTo(200);
            assertThat(connection.get("/code/late").body()).isEqualTo("false");
        }
        hasLeft("code", 1_000_000 - 20);
    }

    @Test
    void forwardsAndErrorDispatchesAreSettledOnce() {
        assertThat(server.http().get("/attribute/forward").status()).isEqualTo(200);
        hasLeft("attribute", 97);
        assertThat(server.http().get("/attribute/error").status()).isEqualTo(500);
        hasLeft("attribute", 94);
        assertThat(server.http().get("/header/not-modified").status()).isEqualTo(304);
        hasLeft("header", 97);
        assertThat(events()).containsExactly("attribute SETTLED", "attribute SETTLED", "header SETTLED");
    }

    @Test
    void theFirstOfSeveralHeadersCounts() {
        assertThat(server.http().get("/header/several").all("X-Tokens")).containsExactly("5", "7");
        hasLeft("header", 95);
    }

    static Stream<Object> unusable() {
        return Stream.of(
                Long.MIN_VALUE,
                -1e-300,
                Double.POSITIVE_INFINITY,
                Float.NaN,
                1e13,
                "1e999999999",
                "9".repeat(5_000),
                BigInteger.TEN.pow(5_000),
                "5 tokens",
                "0x",
                "5,5",
                List.of(3),
                new Object() {
                    @Override
                    public String toString() {
                        throw new IllegalStateException("on purpose");
                    }
                });
    }

    @ParameterizedTest
    @MethodSource("unusable")
    void theEstimateStandsForAValueThatIsNoCost(Object value) {
        server.bean(Api.class).value = value;
        assertThat(server.http().get("/attribute/value").status()).isEqualTo(200);
        hasLeft("attribute", 90);
        assertThat(events()).containsExactly("attribute SETTLE_FAILURE");
    }

    /** The application sets the cost so far with each piece. */
    @Test
    void aClientThatDisconnectsPaysForWhatItGot() throws Exception {
        try (RawHttp.Connection connection = server.http().open()) {
            connection.write(RawHttp.text("GET", "/code/stream"));
            assertThat(connection.readHead().status()).isEqualTo(200);
            Awaitility.await().until(() -> server.bean(Api.class).pieces > 10);
        }
        Awaitility.await().until(() -> events().contains("code SETTLED"));
        assertThat(server.bean(Api.class).pieces).isGreaterThan(10);
        Awaitility.await() // the last piece is settled before it is counted
                .until(() -> server.available("code") == 1_000_000 - server.bean(Api.class).pieces);
    }

    /** The application sets the whole cost when it has ended the response, as a finally block around the stream does. */
    @Test
    void aClientThatDisconnectsPaysForWhatIsSetLater() throws Exception {
        for (int i = 1; i <= 10; i++) {
            try (RawHttp.Connection connection = server.http().open()) {
                connection.write(RawHttp.text("GET", "/code/later"));
                assertThat(connection.readHead().status()).isEqualTo(200);
                connection.reset();
            }
            long left = 1_000_000 - i * 500L;
            Awaitility.await().pollInterval(Duration.ofMillis(5)).until(() -> server.available("code") == left);
        }
    }

    /** The documentation names this: a client may ask for compression. */
    @Test
    void aCompressedResponseHasNoLengthSoTheEstimateStands() {
        assertThat(server.http().get("/size").header("Content-Length")).isEqualTo("5000");
        hasLeft("size", 95_000);
        assertThat(server.http().get("/size", "Accept-Encoding: gzip").header("Content-Length"))
                .isNull();
        hasLeft("size", 94_990);
    }

    /** The documentation names this: Spring MVC makes path variables attributes of a forwarded view. */
    @Test
    void aPathVariableOfAForwardedViewMayHaveTheNameOfTheAttribute() {
        assertThat(server.http().get("/attribute/view/0").status()).isEqualTo(200);
        hasLeft("attribute", 100);
    }

    @Configuration(proxyBeanMethods = false)
    static class Application {

        @Bean
        SettleContract.Events events() {
            return new SettleContract.Events();
        }

        @Bean
        Api api() {
            return new Api();
        }
    }

    @Controller
    static class Api {

        volatile Object value = "";
        volatile ActualCost kept;
        volatile long pieces;

        @RequestMapping({"/attribute/none", "/header/none"})
        @ResponseBody
        String none() {
            return "done";
        }

        @GetMapping("/attribute/number/{tokens}")
        @ResponseBody
        String attribute(@PathVariable long tokens, HttpServletRequest request) {
            request.setAttribute("tokens", tokens);
            return "done";
        }

        @GetMapping("/header/number/{tokens}")
        @ResponseBody
        String header(@PathVariable long tokens, HttpServletResponse response) {
            response.setHeader("X-Tokens", Long.toString(tokens));
            return "done";
        }

        @GetMapping("/attribute/value")
        @ResponseBody
        String value(HttpServletRequest request) {
            request.setAttribute("tokens", value);
            return "done";
        }

        @GetMapping("/attribute/forward")
        void forward(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
            request.setAttribute("tokens", 3);
            request.getRequestDispatcher("/attribute/none").forward(request, response);
        }

        @GetMapping("/attribute/error")
        void error(HttpServletRequest request, HttpServletResponse response) throws IOException {
            request.setAttribute("tokens", 3);
            response.sendError(500);
        }

        @GetMapping("/attribute/view/{tokens}")
        String view(@PathVariable String tokens, HttpServletRequest request) {
            request.setAttribute("tokens", 50);
            return "forward:/attribute/none";
        }

        @GetMapping("/header/not-modified")
        void notModified(HttpServletResponse response) {
            response.setHeader("X-Tokens", "3");
            response.setStatus(HttpServletResponse.SC_NOT_MODIFIED);
        }

        @GetMapping("/header/several")
        void several(HttpServletResponse response) {
            response.addHeader("X-Tokens", "5");
            response.addHeader("X-Tokens", "7");
        }

        @GetMapping("/code/keep")
        @ResponseBody
        String keep(ActualCost cost) {
            kept = cost;
            return "done";
        }

        @GetMapping("/code/late")
        @ResponseBody
        String late() {
            return Boolean.toString(kept.settle("code", 0));
        }

        @GetMapping(path = "/size", produces = "text/plain")
        @ResponseBody
        String size() {
            return "a".repeat(5_000);
        }

        /** Sends pieces until the client is gone, and then sets the cost. */
        @GetMapping("/code/later")
        SseEmitter later(ActualCost cost) {
            SseEmitter events = new SseEmitter(0L);
            Thread thread = new Thread(() -> {
                try {
                    while (true) {
                        events.send("a".repeat(1_000));
                    }
                } catch (IOException | IllegalStateException gone) {
                    events.completeWithError(gone);
                    cost.settle("code", 500);
                }
            });
            thread.setDaemon(true);
            thread.start();
            return events;
        }

        /** Sends pieces until the client is gone. */
        @GetMapping("/code/stream")
        SseEmitter stream(ActualCost cost) {
            SseEmitter events = new SseEmitter(0L);
            Thread thread = new Thread(() -> {
                try {
                    for (long piece = 1; ; piece++) {
                        events.send("a".repeat(1_000));
                        if (!cost.settle("code", piece)) {
                            return;
                        }
                        pieces = piece;
                    }
                } catch (IOException | IllegalStateException gone) {
                    events.completeWithError(gone);
                }
            });
            thread.setDaemon(true);
            thread.start();
            return events;
        }
    }
}
