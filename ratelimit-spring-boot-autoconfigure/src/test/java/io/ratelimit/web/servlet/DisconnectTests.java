package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Connection;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.multipart.MultipartFile;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** Clients of HTTP/1.1 that close or reset the connection before the handler has a result, or within the body. */
@Timeout(60)
class DisconnectTests {

    private static final String YAML = """
            server.tomcat.connection-timeout: 1s
            ratelimit:
              policies:
                successes: { rate: 100/1h, refund-on: 2xx }
                failures: { rate: 100/1h, refund-on: 5xx }
                early: { rate: 100/1h, phase: before-authentication, refund-on: [2xx, 5xx] }
            """;

    private static final int LENGTH = 200;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    private final Api api = server.bean(Api.class);

    @BeforeEach
    void forgetEarlierRequests() {
        api.finish = new CountDownLatch(1);
        api.failure = null;
        api.begun.drainPermits();
        api.entered.drainPermits();
        api.completed = new Semaphore(0); // an earlier request may end late
    }

    /** The container notices the end of the connection at its next write, when the status of the guess is known. */
    @ParameterizedTest
    @CsvSource({
        "deferred, true",
        "deferred, false",
        "future, true",
        "future, false",
        "callable, true",
        "callable, false"
    })
    void aWrongGuessIsPaidIfItsClientDisconnects(String kind, boolean reset) throws Exception {
        for (int i = 0; i < 3; i++) {
            disconnect(kind, reset);
        }
        assertKept(3);
        api.finish.countDown();
        awaitCompletions(3);
        assertKept(3);
    }

    @ParameterizedTest
    @CsvSource({"stream", "late-stream"})
    void aStreamThatBreaksIsPaid(String kind) throws Exception {
        disconnect(kind, true);
        assertKept(1);
        api.finish.countDown();
        awaitCompletions(1);
        assertKept(1);
    }

    private void disconnect(String kind, boolean reset) throws Exception {
        try (Connection client = server.http().open()) {
            client.write(RawHttp.text("GET", "/guess/" + kind));
            api.begun.acquire();
            if (reset) {
                client.reset();
            }
        }
    }

    /** The application answers each failure with 500, which "failures" would give back. */
    @ParameterizedTest
    @CsvSource({
        "stream, true", "stream, false",
        "wrapped, true", "wrapped, false",
        "reader, true", "reader, false",
        "bytes, true", "bytes, false",
        "part, true", "part, false",
        "form, true", "form, false",
        "callable, true", "callable, false",
        "future, true", "future, false"
    })
    void aBodyThatBreaksOffIsPaid(String kind, boolean reset) throws Exception {
        try (Connection client = server.http().open()) {
            client.write(bodyThatBreaksOff(kind));
            api.entered.acquire();
            if (reset) {
                client.reset();
            }
        }
        awaitCompletions(1);
        assertKept(1);
    }

    @Test
    void aBodyThatDoesNotComeIsPaid() throws Exception {
        try (Connection client = server.http().open()) {
            client.write(bodyThatBreaksOff("stream"));
            awaitCompletions(1);
        }
        assertKept(1);
    }

    private static String bodyThatBreaksOff(String kind) {
        String type = kind.equals("part")
                ? "multipart/form-data; boundary=x"
                : kind.equals("form") ? "application/x-www-form-urlencoded" : "application/octet-stream";
        String begun =
                kind.equals("part") ? "--x\r\nContent-Disposition: form-data; name=\"file\"; file" : "name=begun";
        return RawHttp.text("POST", "/body/" + kind, "Content-Type: " + type, "Content-Length: " + LENGTH) + begun;
    }

    @Test
    void whatTheHandlerDoesWithAWholeBodyIsItsOwn() throws Exception {
        String whole = RawHttp.text("POST", "/body/stream", "Content-Length: " + LENGTH, "Connection: close");
        assertThat(server.http().send(whole + "a".repeat(LENGTH)).status()).isEqualTo(500);
        awaitCompletions(1);
        assertThat(server.available("failures")).isEqualTo(100);
        assertThat(server.available("early")).isEqualTo(100);
        assertThat(server.available("successes")).isEqualTo(99);
    }

    /** Waits for the container's report, which Tomcat may lose together with the client. Then nothing comes back. */
    private void awaitCompletions(int requests) throws InterruptedException {
        api.completed.tryAcquire(requests, 20, TimeUnit.SECONDS);
    }

    private void assertKept(int requests) {
        assertThat(List.of(server.available("successes"), server.available("failures"), server.available("early")))
                .as(() -> String.valueOf(api.failure))
                .containsOnly(100L - requests);
    }

    @RestController
    static class Api {

        final Semaphore begun = new Semaphore(0);
        final Semaphore entered = new Semaphore(0);
        volatile Semaphore completed = new Semaphore(0);
        volatile CountDownLatch finish = new CountDownLatch(0);
        volatile Exception failure;

        private ResponseEntity<String> guess() {
            await();
            return ResponseEntity.status(401).body("wrong");
        }

        private void await() {
            begun.release();
            try {
                finish.await();
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }

        @GetMapping("/guess/deferred")
        DeferredResult<ResponseEntity<String>> deferred() {
            DeferredResult<ResponseEntity<String>> result = new DeferredResult<>();
            new Thread(() -> result.setResult(guess())).start();
            return result;
        }

        @GetMapping("/guess/future")
        CompletableFuture<ResponseEntity<String>> future() {
            return CompletableFuture.supplyAsync(this::guess, task -> new Thread(task).start());
        }

        @GetMapping("/guess/callable")
        Callable<ResponseEntity<String>> callable() {
            return this::guess;
        }

        @GetMapping("/guess/stream")
        StreamingResponseBody stream() {
            return out -> {
                await();
                for (int i = 0; i < 100; i++) {
                    out.write(new byte[100_000]);
                    out.flush();
                }
            };
        }

        @GetMapping("/guess/late-stream")
        StreamingResponseBody lateStream() {
            return out -> {
                out.flush();
                await();
                throw new IOException("Broken pipe");
            };
        }

        private static String read(HttpServletRequest request) throws IOException {
            int length = request.getInputStream().readAllBytes().length;
            throw new IllegalStateException("after " + length);
        }

        @PostMapping("/body/stream")
        String body(HttpServletRequest request) throws IOException {
            return read(request);
        }

        @PostMapping("/body/wrapped")
        String wrapped(HttpServletRequest request) {
            try {
                return read(request);
            } catch (IOException unreadable) {
                throw new IllegalArgumentException("wrapped", unreadable);
            }
        }

        @PostMapping("/body/reader")
        String reader(HttpServletRequest request) throws IOException {
            StringWriter text = new StringWriter();
            request.getReader().transferTo(text);
            return text.toString();
        }

        @PostMapping("/body/bytes")
        int bytes(@RequestBody byte[] body) {
            return body.length;
        }

        @PostMapping("/body/part")
        String part(MultipartFile file) {
            return file.getName();
        }

        @PostMapping("/body/form")
        String form(@RequestParam String name) {
            return name;
        }

        @PostMapping("/body/callable")
        Callable<String> callableBody(HttpServletRequest request) {
            return () -> read(request);
        }

        @PostMapping("/body/future")
        CompletableFuture<String> futureBody(HttpServletRequest request) {
            return CompletableFuture.supplyAsync(() -> wrapped(request), task -> new Thread(task).start());
        }

        @ExceptionHandler
        ResponseEntity<String> failed(Exception failure) {
            this.failure = failure;
            return ResponseEntity.internalServerError().body("failed");
        }

        @Bean
        FilterRegistrationBean<Filter> outermost() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                Semaphore completed = this.completed;
                entered.release();
                try {
                    chain.doFilter(request, response);
                } finally {
                    if (request.isAsyncStarted()) {
                        request.getAsyncContext().addListener(new OnComplete(completed));
                    } else {
                        completed.release();
                    }
                }
            });
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            registration.setAsyncSupported(true);
            return registration;
        }
    }
}
