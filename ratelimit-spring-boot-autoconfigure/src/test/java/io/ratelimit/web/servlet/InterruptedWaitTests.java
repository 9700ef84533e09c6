package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.Filter;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Requests whose thread is interrupted while they wait in the queue. */
@Timeout(60)
class InterruptedWaitTests {

    private static final String YAML = """
            ratelimit:
              policies:
                guard: { key: ip, rate: 10/1d, phase: before-authentication }
                early: { key: ip, rate: 10/1d }
                late: { key: user, rate: 1/1h, paths: /late, max-wait: 5h, refund-on: 5xx }
                first: { rate: 1/1h, paths: /first, max-wait: 5h, phase: before-authentication }
                work: { rate: 1/1h, max-wait: 5h, applies-to: annotated }
            """;

    @RegisterExtension
    static final TestServer server =
            TestServer.secured(YAML, BasicSecurity.class, Threads.class, Api.class, Limited.class, Failures.class);

    private final RawHttp http = server.http();
    private final Threads threads = server.bean(Threads.class);

    @ParameterizedTest
    @ValueSource(strings = {"/late", "/first", "/call"})
    void theAnswerIs503AndTheTokensAreBack(String path) throws InterruptedException {
        String policy = path.equals("/call") ? "work" : path.substring(1);
        String[] key = policy.equals("late") ? new String[] {"alice"} : new String[0];
        get(path);
        long early = server.available("early", "127.0.0.1");
        long guard = server.available("guard", "127.0.0.1");
        int made = server.bean(Api.class).made.get();

        Response response = interrupted(path, "");

        assertThat(response.status()).isEqualTo(503);
        assertThat(response.header("Retry-After")).isEqualTo("1");
        assertThat(response.header("Cache-Control")).isEqualTo("no-store");
        assertThat(response.header("RateLimit")).isNull();
        assertThat(response.header("Content-Type")).isEqualTo("application/problem+json");
        assertThat(response.body())
                .isEqualTo("{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\","
                        + "\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"The request was interrupted while"
                        + " it waited in the queue, please retry.\"}");
        assertThat(server.bean(Api.class).made).hasValue(made);
        assertThat(server.bean(Throttlers.class).waiting(policy)).isZero();
        assertThat(server.available("early", "127.0.0.1"))
                .as("given back unless the handler was reached")
                .isEqualTo(path.equals("/call") ? early - 1 : early);
        assertThat(server.available("guard", "127.0.0.1"))
                .as("it has paid for the authentication")
                .isEqualTo(path.equals("/first") ? guard : guard - 1);
        server.advance(Duration.ofHours(1));
        assertThat(server.available(policy, key)).isEqualTo(1);
    }

    @Test
    void theThreadIsMarkedAsInterruptedAgain() throws InterruptedException {
        get("/late");
        interrupted("/late", "Accept: text/plain");
        assertThat(threads.marked.poll(10, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aClientThatPrefersTextGetsALine() throws InterruptedException {
        get("/late");
        Response response = interrupted("/late", "Accept: text/plain");
        assertThat(response.header("Content-Type")).startsWith("text/plain");
        assertThat(response.body())
                .isEqualTo("The request was interrupted while it waited in the queue, please retry.\n");
    }

    @Test
    void aPageOfAnotherOriginMayReadTheAnswer() throws InterruptedException {
        get("/late");
        assertThat(interrupted("/late", "Origin: http://page.example").header("Access-Control-Allow-Origin"))
                .isEqualTo("http://page.example");
    }

    /** Tomcat drops the connection of a thread that is interrupted before its response is sent. */
    @Test
    void anAnswerWithoutABodyIsSentAsWell() throws InterruptedException {
        get("/late");
        ManualTimeSource time = server.bean(ManualTimeSource.class);
        try (Connection waiting = http.open()) {
            waiting.write(RawHttp.text("HEAD", "/late", basic("alice"), "Connection: close"));
            Awaitility.await().until(() -> time.waiting() == 1);
            threads.serving.take().interrupt();
            assertThat(waiting.readHead().status()).isEqualTo(503);
        }
    }

    /** The stop waits for active requests, and then the server interrupts them. */
    @Test
    void aStoppingServerServesNoWaitingRequest() throws InterruptedException {
        TestServer stopping = TestServer.secured(
                        YAML + "spring.lifecycle.timeout-per-shutdown-phase: 100ms\n",
                        BasicSecurity.class,
                        Threads.class,
                        Api.class)
                .start();
        Api api = stopping.bean(Api.class);
        Throttlers throttlers = stopping.bean(Throttlers.class);
        ManualTimeSource time = stopping.bean(ManualTimeSource.class);
        stopping.http().get("/late", basic("alice"));
        try (Connection waiting = stopping.http().open()) {
            waiting.write(RawHttp.text("GET", "/late", basic("alice"), "Connection: close"));
            Awaitility.await().until(() -> time.waiting() == 1);
            stopping.close();
            Awaitility.await().until(() -> time.waiting() == 0);
        }
        Awaitility.await().until(() -> throttlers.waiting("late") == 0);
        assertThat(api.made).hasValue(1);
        time.advance(Duration.ofHours(1));
        assertThat(throttlers.snapshot("late", "alice").available()).isEqualTo(1);
    }

    private void get(String path) throws InterruptedException {
        threads.marked.clear();
        threads.serving.clear();
        assertThat(http.get(path, basic("alice")).status()).isEqualTo(200);
        threads.marked.poll(10, TimeUnit.SECONDS);
        threads.serving.clear();
    }

    private Response interrupted(String path, String header) throws InterruptedException {
        ManualTimeSource time = server.bean(ManualTimeSource.class);
        try (Connection waiting = http.open()) {
            waiting.write(
                    RawHttp.text("GET", path, basic("alice"), "Connection: close", header.isEmpty() ? "A: b" : header));
            Awaitility.await().until(() -> time.waiting() == 1);
            threads.serving.take().interrupt();
            return waiting.readToEnd();
        }
    }

    /** Records the threads that serve requests, and their interrupt status at the end. */
    @Configuration(proxyBeanMethods = false)
    static class Threads {

        final BlockingQueue<Thread> serving = new LinkedBlockingQueue<>();
        final BlockingQueue<Boolean> marked = new LinkedBlockingQueue<>();

        @Bean
        FilterRegistrationBean<Filter> outermost() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                serving.add(Thread.currentThread());
                chain.doFilter(request, response);
                marked.add(Thread.currentThread().isInterrupted());
            });
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            registration.setAsyncSupported(true);
            return registration;
        }
    }

    @RestController
    @CrossOrigin("http://page.example")
    static class Api {

        final AtomicInteger made = new AtomicInteger();

        @GetMapping({"/late", "/first"})
        public String serve() {
            made.incrementAndGet();
            return "served";
        }
    }

    @RestController
    static class Limited {

        private final Api api;

        Limited(Api api) {
            this.api = api;
        }

        @RateLimited("work")
        @GetMapping("/call")
        public String call() {
            return api.serve();
        }
    }

    @RestControllerAdvice
    static class Failures {

        @ExceptionHandler
        String any(Exception any) {
            return "answered by the application";
        }
    }
}
