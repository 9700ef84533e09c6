package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.key.LimitResolver;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Component;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.request.async.AsyncRequestTimeoutException;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.config.annotation.InterceptorRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** A request holds its slots until it is complete, in whatever way it ends. */
@Timeout(60)
class InFlightRequestTests {

    private static final String YAML = """
            spring.mvc.async.request-timeout: 20s
            ratelimit:
              policies:
                early: { in-flight: 2, paths: /run/** }
                late: { key: user, rate: 1000/1m, in-flight: 2, paths: /run/** }
                metered: { rate: 1000000/1d, settle: "attribute:tokens", paths: /run/** }
                watched: { in-flight: 1, mode: shadow, paths: /run/** }
                drained: { key: user, rate: 1/1h, paths: /run/drained }
                chat: { key: ip, rate: 60/1m, in-flight: 1, paths: /chat }
                exports: { in-flight: 1, paths: /exports, status: 503 }
                renders: { in-flight: 1, max-wait: 10s, queue-limit: 5, paths: /renders }
                full: { rate: 600/1m, in-flight: 1, max-wait: 10s, queue-limit: 1, paths: /full }
                ranked: { key: "query:name", in-flight: 1, paths: /ranked, overrides: [ { keys: [boss], in-flight: 2 } ] }
                contract: { key: "query:name", in-flight: 1, paths: /contract, limit: "bean:contracts" }
                own: { key: ip, in-flight: 1, paths: /own, headers: x-ratelimit }
            """;

    private static final long TOKENS = 100;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Forwards.class, Meter.class);

    private final Api api = server.bean(Api.class);
    private final Throttlers throttlers = server.bean(Throttlers.class);

    @BeforeEach
    void hold() {
        api.begun.drainPermits();
        api.finish = new CountDownLatch(1);
    }

    @AfterEach
    void nothingIsInFlight() {
        api.finish.countDown();
        throttlers
                .all()
                .forEach(throttler ->
                        await(() -> throttlers.inFlight(throttler.policy().name()) == 0));
    }

    private static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("in time").isLessThan(end);
            Thread.yield();
        }
    }

    private static CompletableFuture<Response> get(String path) {
        return CompletableFuture.supplyAsync(() -> server.http().get(path), task -> new Thread(task).start());
    }

    @ParameterizedTest
    @ValueSource(strings = {"plain", "callable", "deferred", "future", "streaming", "events", "begun", "forward"})
    void aRequestIsCountedUntilItsResponseIsComplete(String kind) throws Exception {
        CompletableFuture<Response> first = get("/run/" + kind);
        CompletableFuture<Response> second = get("/run/" + kind);
        api.begun.acquire(2);

        assertThat(throttlers.inFlight("early")).isEqualTo(2);
        assertThat(throttlers.inFlight("late")).isEqualTo(2);
        assertThat(throttlers.inFlight("watched")).as("in shadow mode").isEqualTo(1);
        assertThat(server.http().get("/run/" + kind).status()).isEqualTo(429);
        api.finish.countDown();
        assertThat(first.get().status()).isEqualTo(200);
        assertThat(second.get().status()).isEqualTo(200);
        await(() -> throttlers.inFlight("early") + throttlers.inFlight("late") + throttlers.inFlight("watched") == 0);
    }

    @ParameterizedTest
    @CsvSource({
        "/run/quick, 200",
        "/run/send-error, 409",
        "/run/exception, 500",
        "/run/handled, 418",
        "/run/async-exception, 500",
        "/run/async-handled, 418",
        "/run/async-forward, 200",
        "/run/timeout, 503",
        "/run/unknown, 404"
    })
    void everyEndOfARequestReleasesIt(String path, int status) throws Exception {
        for (int i = 0; i < 5; i++) {
            CompletableFuture<Response> other = get(path); // Tomcat looks for timeouts once a second
            assertThat(server.http().get(path).status()).isEqualTo(status);
            assertThat(other.get().status()).isEqualTo(status);
            await(() -> throttlers.inFlight("early") + throttlers.inFlight("late") == 0);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"deferred", "future", "callable", "streaming", "events", "begun"})
    void aClientThatGoesAwayLeavesNothingInFlightAndPays(String kind) throws Exception {
        throttlers.reset("metered");
        for (int round = 0; round < 10; round++) { // Tomcat completes some of the requests, and not others
            hold();
            for (int i = 0; i < 2; i++) {
                try (Connection connection = server.http().open()) {
                    connection.write(RawHttp.text("GET", "/run/" + kind));
                    api.begun.acquire();
                    connection.reset();
                }
            }
            api.finish.countDown();
            await(() -> throttlers.inFlight("early") + throttlers.inFlight("late") == 0);
        }
        await(() -> server.available("metered") == 1_000_000 - 20 * TOKENS);
    }

    @Test
    void aRequestThatALaterPolicyRejectsIsNotInFlight() {
        assertThat(server.http().get("/run/drained").status()).isEqualTo(404);
        assertThat(server.http().get("/run/drained").status()).isEqualTo(429);
        assertThat(throttlers.inFlight("early")).isZero();
        assertThat(throttlers.inFlight("late")).isZero();
    }

    @Test
    void aRejectionNamesTheLimit() throws Exception {
        CompletableFuture<Response> running = get("/chat");
        api.begun.acquire();

        Response rejected = server.http().get("/chat");

        assertThat(rejected.status()).isEqualTo(429);
        assertThat(rejected.header("RateLimit-Policy")).isEqualTo("\"chat\";q=1;qu=\"concurrent-requests\"");
        assertThat(rejected.header("RateLimit")).isEqualTo("\"chat\";r=0;t=1");
        assertThat(rejected.header("Retry-After")).isEqualTo("1");
        assertThat(rejected.body()).isEqualTo("""
                {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",\
                "title":"Too Many Requests","status":429,\
                "detail":"Too many requests are in flight for 'chat' policy, please retry after 1000 ms.",\
                "violated-policies":["chat"],"retryAfterMs":1000}""");
        assertThat(server.available("chat", "127.0.0.1")).as("tokens").isEqualTo(59);
        api.finish.countDown();
        assertThat(running.get().header("RateLimit-Policy")).isEqualTo("\"chat\";q=60;w=60");
    }

    @Test
    void theRetryTimeIsTheMeanTimeThatRequestsRun() throws Exception {
        CompletableFuture<Response> running = get("/exports");
        api.begun.acquire();
        server.advance(Duration.ofSeconds(40));
        api.finish.countDown();
        assertThat(running.get().header("RateLimit-Policy")).isNull();
        hold();
        CompletableFuture<Response> next = get("/exports");
        api.begun.acquire();

        Response rejected = server.http().get("/exports");

        assertThat(rejected.status()).isEqualTo(503);
        assertThat(rejected.header("Retry-After")).isEqualTo("40");
        api.finish.countDown();
        next.get();
    }

    @ParameterizedTest
    @CsvSource({"/ranked?name=boss, 2", "/ranked?name=other, 1", "/contract?name=big, 3", "/contract?name=small, 1"})
    void anOverrideAndALimitOfTheRequestHaveTheirOwnNumber(String path, int number) throws Exception {
        for (int i = 0; i < number; i++) {
            get(path);
        }
        api.begun.acquire(number);

        Response rejected = server.http().get(path);

        assertThat(rejected.status()).isEqualTo(429);
        assertThat(rejected.header("RateLimit-Policy")).endsWith("q=" + number + ";qu=\"concurrent-requests\"");
    }

    @Test
    void otherHeadersShowTheNumber() throws Exception {
        CompletableFuture<Response> running = get("/own");
        api.begun.acquire();
        Response rejected = server.http().get("/own");
        assertThat(rejected.header("X-RateLimit-Limit")).isEqualTo("1");
        assertThat(rejected.header("X-RateLimit-Remaining")).isEqualTo("0");
        assertThat(rejected.header("X-RateLimit-Reset")).as("not at once").isEqualTo(rejected.header("Retry-After"));
        api.finish.countDown();
        running.get();
    }

    @Test
    void aFullQueueForSlotsIsNoLevelOfTheBucket() throws Exception {
        CompletableFuture<Response> running = get("/full");
        api.begun.acquire();
        CompletableFuture<Response> waiting = get("/full");
        await(() -> throttlers.waiting("full") == 1);

        Response rejected = server.http().get("/full");

        assertThat(rejected.status()).isEqualTo(429);
        assertThat(rejected.header("RateLimit-Policy")).isEqualTo("\"full\";q=1;qu=\"concurrent-requests\"");
        api.finish.countDown();
        running.get();
        waiting.get();
    }

    @Test
    void waitingRequestsGetTheReleasedSlotsInTheirOrder() throws Exception {
        CompletableFuture<Response> running = get("/renders");
        api.begun.acquire();
        CompletableFuture<Response> second = get("/renders");
        await(() -> throttlers.waiting("renders") == 1);
        CompletableFuture<Response> third = get("/renders");
        await(() -> throttlers.waiting("renders") == 2);

        CountDownLatch ofFirst = api.finish;
        api.finish = new CountDownLatch(1);
        ofFirst.countDown();
        assertThat(running.get().status()).isEqualTo(200);
        api.begun.acquire();
        assertThat(throttlers.waiting("renders")).isEqualTo(1);
        assertThat(third).isNotDone();
        CountDownLatch ofSecond = api.finish;
        api.finish = new CountDownLatch(0);
        ofSecond.countDown();
        assertThat(second.get().status()).isEqualTo(200);
        assertThat(third.get().status()).isEqualTo(200);
    }

    @Test
    void aWaitThatIsTooLongIsRejected() throws Exception {
        CompletableFuture<Response> running = get("/renders");
        api.begun.acquire();
        CompletableFuture<Response> waiting = get("/renders");
        await(() -> throttlers.waiting("renders") == 1
                && server.bean(ManualTimeSource.class).waiting() == 1);

        server.advance(Duration.ofSeconds(10));

        assertThat(waiting.get().status()).isEqualTo(429);
        api.finish.countDown();
        assertThat(running.get().status()).isEqualTo(200);
    }

    @Controller
    @ResponseBody
    static class Api {

        @Bean
        static LimitResolver contracts() {
            return request -> "big".equals(request.query("name")) ? BucketSpec.inFlight(3) : null;
        }

        final Semaphore begun = new Semaphore(0);
        volatile CountDownLatch finish = new CountDownLatch(0);

        private String work() {
            CountDownLatch end = finish;
            begun.release();
            boolean interrupted = false;
            while (true) {
                try {
                    end.await();
                    break;
                } catch (InterruptedException goesOn) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            return "done";
        }

        @GetMapping({"/run/plain", "/chat", "/exports", "/renders", "/full", "/own", "/ranked", "/contract", "/target"})
        String plain() {
            return work();
        }

        @GetMapping({"/run/quick", "/quick"})
        String quick() {
            return "done";
        }

        @GetMapping("/run/callable")
        Callable<String> callable() {
            return this::work;
        }

        @GetMapping("/run/deferred")
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>();
            new Thread(() -> result.setResult(work())).start();
            return result;
        }

        @GetMapping("/run/future")
        CompletableFuture<String> future() {
            return CompletableFuture.supplyAsync(this::work, task -> new Thread(task).start());
        }

        /** The first byte is sent at once, the last one at the end. */
        @GetMapping("/run/streaming")
        StreamingResponseBody streaming() {
            return (OutputStream out) -> {
                out.write('1');
                out.flush();
                out.write(work().getBytes(StandardCharsets.UTF_8));
            };
        }

        @GetMapping("/run/events")
        SseEmitter events() {
            return complete(new SseEmitter());
        }

        @GetMapping("/run/begun")
        SseEmitter begun() throws IOException {
            SseEmitter events = new SseEmitter();
            events.send("begun");
            return complete(events);
        }

        private SseEmitter complete(SseEmitter events) {
            new Thread(() -> {
                        work();
                        events.complete();
                    })
                    .start();
            return events;
        }

        @GetMapping("/run/timeout")
        DeferredResult<String> timeout() {
            return new DeferredResult<>(1L);
        }

        @GetMapping("/run/send-error")
        void sendError(HttpServletResponse response) throws IOException {
            response.sendError(409);
        }

        @GetMapping("/run/exception")
        String exception() {
            throw new IllegalStateException("expected by the test");
        }

        @GetMapping("/run/handled")
        String handled() {
            throw new UnsupportedOperationException("expected by the test");
        }

        @GetMapping("/run/async-exception")
        Callable<String> asyncException() {
            return this::exception;
        }

        @GetMapping("/run/async-handled")
        Callable<String> asyncHandled() {
            return this::handled;
        }

        @ExceptionHandler
        ResponseEntity<String> failed(UnsupportedOperationException failure) {
            return ResponseEntity.status(418).build();
        }

        @ExceptionHandler
        ResponseEntity<String> tooLate(AsyncRequestTimeoutException failure) {
            return ResponseEntity.status(503).build();
        }

        @GetMapping("/run/drained")
        ResponseEntity<String> drained() {
            return ResponseEntity.notFound().build();
        }
    }

    /** Sets the actual cost of each request before its handler begins. */
    @Component
    static class Meter implements WebMvcConfigurer, HandlerInterceptor {

        @Override
        public void addInterceptors(InterceptorRegistry registry) {
            registry.addInterceptor(this);
        }

        @Override
        public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler) {
            request.setAttribute("tokens", TOKENS);
            return true;
        }
    }

    @Controller
    static class Forwards {

        @GetMapping("/run/forward")
        String forward() {
            return "forward:/target";
        }

        @GetMapping("/run/async-forward")
        Callable<String> asyncForward() {
            return () -> "forward:/quick";
        }
    }
}
