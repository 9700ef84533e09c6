package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.ActualCost;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.AsyncRequestTimeoutException;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** Requests whose client ends them, or makes them fail, give nothing back. */
@Timeout(60)
class RefundOfBrokenRequestsTests {

    private static final String YAML = """
            server.http2.enabled: true
            spring.mvc.async.request-timeout: 20s
            ratelimit:
              policies:
                early: { rate: 100/1h, paths: /guess/**, phase: before-authentication, refund-on: "!404" }
                late: { rate: 100/1h, paths: /guess/**, phase: after-authentication, refund-on: 2xx }
                known: { rate: 100/1h, paths: /guess/**, phase: before-authentication, refund-on: authenticated }
                settled: { rate: 100/1h, paths: /guess/**, settle: code }
                failures: { rate: 100/1h, paths: [/upload, /json, /number], refund-on: 5xx }
                codes: { key: ip, rate: 5/1m, paths: /login/code, methods: POST, phase: before-authentication, settle: code }
            """;

    private static final String LAZY = """
            spring.servlet.multipart.resolve-lazily: true
            ratelimit.policies.failures: { rate: 100/1h, refund-on: 5xx }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, BasicSecurity.class, Api.class, Completions.class);

    private final Api api = server.bean(Api.class);
    private final Semaphore completed = server.bean(Completions.class).completed;

    @ParameterizedTest
    @ValueSource(strings = {"deferred", "future", "callable", "streaming", "events", "begun"})
    void aResetStreamGivesNothingBack(String kind) throws Exception {
        api.finish = new CountDownLatch(1);
        api.started.drainPermits();
        completed.drainPermits();
        for (int i = 0; i < 3; i++) { // a connection for each stream, as Tomcat closes one with many resets
            try (RawHttp2 http = new RawHttp2(server.http().port())) {
                int stream = http.request("GET", "/guess/" + kind, RawHttp.basic("alice"));
                api.started.acquire();
                server.bean(Completions.class).asynchronous.acquire();
                http.reset(stream);
                completed.acquire();
            }
        }
        assertKept(97);
        api.finish.countDown();
        api.checked.acquire(3);
        assertKept(97);
    }

    private static void assertKept(long tokens) {
        assertThat(server.available("early")).isEqualTo(tokens);
        assertThat(server.available("late")).isEqualTo(tokens);
        assertThat(server.available("known")).isEqualTo(tokens);
        assertThat(server.available("settled")).isEqualTo(tokens);
    }

    @ParameterizedTest
    @ValueSource(strings = {"deferred", "future", "callable", "streaming", "events", "begun"})
    void aResponseThatIsReadGivesBack(String kind) throws Exception {
        api.finish = new CountDownLatch(0);
        completed.drainPermits();
        assertThat(server.http()
                        .get("/guess/" + kind, RawHttp.basic("alice"), "Connection: close")
                        .status())
                .isEqualTo(200);
        completed.acquire();
        assertThat(server.available("early")).isEqualTo(100);
        assertThat(server.available("late")).isEqualTo(100);
        assertThat(server.available("known")).isEqualTo(100);
        server.bean(Completions.class).asynchronous.drainPermits();
        api.checked.drainPermits();
    }

    /** A client can make a slow check slower, and the check runs on. */
    @Test
    void aTimeoutGivesNothingBack() throws Exception {
        completed.drainPermits();
        assertThat(server.http().get("/guess/timeout", RawHttp.basic("alice")).status())
                .isEqualTo(503);
        completed.acquire();
        assertThat(server.available("early")).isEqualTo(99);
        assertThat(server.available("known")).isEqualTo(99);
        server.bean(Completions.class).asynchronous.drainPermits();
    }

    @Test
    void anErrorThatTheRequestItselfCausesGivesNothingBack() {
        assertFails("POST /upload HTTP/1.1\r\nContent-Type: multipart/form-data\r\nContent-Length: 9\r\n", "no parts!");
        assertFails("POST /json HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1\r\n", "{");
        assertFails("POST /number HTTP/1.1\r\nContent-Length: 0\r\n", "");
        assertFails("POST /number?number=text HTTP/1.1\r\nContent-Length: 0\r\n", "");
        assertFails("POST /number?number=%zz HTTP/1.1\r\nContent-Length: 0\r\n", "");
        assertThat(server.available("failures")).isEqualTo(95);
        assertThat(server.http()
                        .post("/number?number=0", RawHttp.basic("alice"), "Content-Length: 0")
                        .status())
                .isEqualTo(500);
        assertThat(server.available("failures"))
                .as("an error of the handler gives back")
                .isEqualTo(95);
    }

    /** Spring MVC has read no part before. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "no parts",
                "--x\r\nContent-Disp",
                "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nno end",
                "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\0b\"\r\n\r\na\r\n--x--\r\n"
            })
    void partsThatTheHandlerCannotReadGiveNothingBack(String body) {
        String boundary = body.startsWith("--x") ? "; boundary=x" : "";
        try (TestServer lazy = TestServer.open(LAZY, Api.class).start()) {
            String head = RawHttp.text(
                    "POST",
                    "/parts",
                    "Connection: close",
                    "Content-Type: multipart/form-data" + boundary,
                    "Content-Length: " + body.length());
            assertThat(lazy.http().send(head + body).status()).isEqualTo(500);
            assertThat(lazy.available("failures")).isEqualTo(99);
        }
    }

    private static void assertFails(String head, String body) {
        Response response = server.http()
                .send(head + "Host: localhost\r\nConnection: close\r\n" + RawHttp.basic("alice") + "\r\n\r\n" + body);
        assertThat(response.status()).as(head).isEqualTo(500);
    }

    /** The recipe of keys.md. */
    @Test
    void anEndpointReportsARightCodeByItsCost() throws Exception {
        for (int i = 0; i < 10; i++) {
            assertThat(enter("123456")).isEqualTo(200);
        }
        for (int i = 0; i < 5; i++) {
            assertThat(enter("guess")).isEqualTo(401);
        }
        assertThat(enter("guess")).isEqualTo(429);
        assertThat(enter("123456")).isEqualTo(429);
    }

    private static int enter(String code) {
        return server.http()
                .post("/login/code?code=" + code, RawHttp.basic("alice"), "Content-Length: 0")
                .status();
    }

    @Configuration(proxyBeanMethods = false)
    static class Completions {

        final Semaphore asynchronous = new Semaphore(0);
        final Semaphore completed = new Semaphore(0);

        /** Listens behind the filters of the limits. */
        @Bean
        FilterRegistrationBean<Filter> completions() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                chain.doFilter(request, response);
                if (request.isAsyncStarted()) {
                    request.getAsyncContext().addListener(new OnComplete(completed));
                    asynchronous.release();
                }
            });
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            registration.setAsyncSupported(true);
            return registration;
        }
    }

    @RestController
    static class Api {

        final Semaphore started = new Semaphore(0);
        final Semaphore checked = new Semaphore(0);
        volatile CountDownLatch finish = new CountDownLatch(0);

        private String check() {
            started.release();
            boolean interrupted = false;
            while (true) {
                try {
                    finish.await();
                    break;
                } catch (InterruptedException goesOn) {
                    interrupted = true;
                }
            }
            checked.release();
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            return "right";
        }

        @GetMapping("/guess/deferred")
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>();
            new Thread(() -> result.setResult(check())).start();
            return result;
        }

        @GetMapping("/guess/future")
        CompletableFuture<String> future() {
            return CompletableFuture.supplyAsync(this::check, task -> new Thread(task).start());
        }

        @GetMapping("/guess/callable")
        Callable<String> callable() {
            return this::check;
        }

        @GetMapping("/guess/streaming")
        StreamingResponseBody streaming() {
            return out -> out.write(check().getBytes(StandardCharsets.UTF_8));
        }

        @GetMapping("/guess/events")
        SseEmitter events() {
            return complete(new SseEmitter());
        }

        @GetMapping("/guess/begun")
        SseEmitter begun() throws Exception {
            SseEmitter events = new SseEmitter();
            events.send("begun");
            return complete(events);
        }

        private SseEmitter complete(SseEmitter events) {
            new Thread(() -> {
                        check();
                        events.complete();
                    })
                    .start();
            return events;
        }

        @GetMapping("/guess/timeout")
        DeferredResult<String> timeout() {
            return new DeferredResult<>(1L);
        }

        @PostMapping("/upload")
        String upload() {
            return "uploaded";
        }

        @PostMapping("/parts")
        int parts(HttpServletRequest request) throws Exception {
            return request.getParts().size();
        }

        @PostMapping("/json")
        String json(@RequestBody Map<String, String> json) {
            return json.toString();
        }

        @PostMapping("/number")
        int number(@RequestParam int number) {
            return 1 / number;
        }

        @PostMapping("/login/code")
        ResponseEntity<Void> code(@RequestParam String code, ActualCost cost) {
            if (!code.equals("123456")) {
                return ResponseEntity.status(401).build();
            }
            cost.settle("codes", 0);
            return ResponseEntity.ok().build();
        }

        @ExceptionHandler
        ResponseEntity<String> failed(Exception failure) {
            if (failure instanceof AsyncRequestTimeoutException) {
                return ResponseEntity.status(503).build();
            }
            return ResponseEntity.internalServerError().body("failed");
        }
    }
}
