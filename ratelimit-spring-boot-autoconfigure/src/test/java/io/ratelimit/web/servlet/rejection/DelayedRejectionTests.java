package io.ratelimit.web.servlet.rejection;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.core.ConditionFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseBody;
import org.springframework.web.context.request.async.DeferredResult;

/** Delayed rejections over HTTP. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
@Tag("timed")
class DelayedRejectionTests {

    private static final String YAML = """
            spring.mvc.async.request-timeout: 1ms
            ratelimit:
              policies:
                slow: { rate: 1/1m, paths: [/slow, "/shop/**"], rejection-delay: 2s }
                quick: { rate: 1/1s, paths: /quick, rejection-delay: 2s, retry-jitter: 1ms-2ms }
                site: { key: ip, rate: 100/1h, paths: [/both, /service] }
                wide: { rate: 1/1h, paths: /both, rejection-delay: 3s, phase: after-authentication }
                wider: { rate: 1/1h, paths: /both, rejection-delay: 1s, phase: after-authentication }
                narrow: { key: ip, rate: 1/1h, paths: /both, rejection-delay: 500ms, phase: after-authentication }
                prompt: { rate: 1/1h, paths: /prompt }
                keyed: { key: header:X-Key, on-missing-key: deny, rate: 1/1h, paths: /keyed, rejection-delay: 2s }
                costly: { rate: 1/1h, cost: query('n'), paths: /costly, rejection-delay: 2s }
                failures: { rate: 5/1h, key: ip, paths: /both, phase: before-authentication, refund-on: "429" }
                work: { rate: 1/1h, applies-to: annotated, rejection-delay: 2s }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, Work.class, Others.class);

    private final DelayedRejections late = server.bean(DelayedRejections.class);
    private final ManualTimeSource time = server.bean(ManualTimeSource.class);
    private final List<Connection> connections = new ArrayList<>();

    @AfterEach
    void close() {
        connections.forEach(Connection::close);
        server.refill();
        atOnce().until(() -> late.waiting() == 0);
    }

    static ConditionFactory atOnce() {
        return await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(2));
    }

    @Test
    void aRejectionIsWrittenWhenItsDelayEnds() {
        server.http().get("/slow");
        Connection refused = putOff("GET", "/slow");

        server.advance(Duration.ofMillis(1999));
        assertThat(time.waiting()).as("the call to come").isEqualTo(1);
        assertThat(refused.hasAnswer()).isFalse();

        server.advance(Duration.ofMillis(1));
        Response refusal = refused.read();
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.body()).endsWith("\"violated-policies\":[\"slow\"],\"retryAfterMs\":58000}");
        await().until(() -> late.waiting() == 0);
    }

    @Test
    void timesAreThoseOfTheMomentOfTheAnswer() {
        server.http().get("/slow");
        Connection refused = putOff("GET", "/slow");
        server.advance(Duration.ofSeconds(2));

        Response refusal = refused.read();
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("58000");
        assertThat(refusal.header("Retry-After")).isEqualTo("58");
        assertThat(refusal.header("RateLimit")).isEqualTo("\"slow\";r=0;t=58");
        assertThat(refusal.header("RateLimit-Policy")).isEqualTo("\"slow\";q=1;w=60");
        server.advance(Duration.ofSeconds(58));
        assertThat(server.http().get("/slow").status()).isEqualTo(200);
    }

    @Test
    void aRetryTimeThatPassesMeanwhileIsTheShortest() {
        server.http().get("/quick");
        Connection refused = putOff("GET", "/quick");
        server.advance(Duration.ofSeconds(2));

        Response refusal = refused.read();
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("1");
        assertThat(refusal.header("Retry-After")).isEqualTo("1");
        assertThat(refusal.header("RateLimit")).isEqualTo("\"quick\";r=0;t=1");
    }

    @Test
    void tokensAreGivenBackBeforeTheAnswer() {
        server.http().get("/both");
        putOff("GET", "/both");
        assertThat(server.available("site", "127.0.0.1")).isEqualTo(99);
    }

    @Test
    void tokensRefundedByStatusAreGivenBackWithTheDelayedResponse() {
        server.http().get("/both");
        Connection refused = putOff("GET", "/both");
        assertThat(server.available("failures", "127.0.0.1")).isEqualTo(3);
        server.advance(Duration.ofSeconds(3));
        refused.read();
        await().until(() -> server.available("failures", "127.0.0.1") == 4);
    }

    @Test
    void theLongestDelayOfThePoliciesThatAreShortCounts() {
        server.http().get("/both");
        Connection refused = putOff("GET", "/both");
        server.advance(Duration.ofMillis(2999));
        assertThat(time.waiting()).as("the call to come").isEqualTo(1);
        server.advance(Duration.ofMillis(1));
        assertThat(refused.read().body()).contains("[\"narrow\",\"wide\",\"wider\"]");
    }

    @Test
    void aPolicyWithoutADelayRejectsAtOnce() {
        server.http().get("/prompt");
        assertThat(server.http().get("/prompt").status()).isEqualTo(429);
    }

    @ParameterizedTest
    @CsvSource({"/keyed, 403", "/costly?n=2, 429"})
    void rejectionsWithoutARetryTimeAreDelayed(String path, int status) {
        Connection refused = putOff("GET", path);
        server.advance(Duration.ofSeconds(2));
        Response refusal = refused.read();
        assertThat(refusal.status()).isEqualTo(status);
        assertThat(refusal.header("Retry-After")).isNull();
    }

    @Test
    void headersOfCorsAreThere() {
        server.http().get("/slow");
        Connection refused = putOff("GET", "/slow", "Origin: http://page");
        server.advance(Duration.ofSeconds(2));
        assertThat(refused.read().header("Access-Control-Allow-Origin")).isEqualTo("*");
    }

    @Test
    void headGetsTheHeadersAndNoBody() {
        server.http().get("/slow");
        Connection refused = putOff("HEAD", "/slow");
        server.advance(Duration.ofSeconds(2));
        Response head = refused.readHead();
        assertThat(head.status()).isEqualTo(429);
        assertThat(head.header("X-RetryAfterMs")).isEqualTo("58000");
        assertThat(refused.get("/free").body()).as("the next on the connection").isEqualTo("free");
    }

    @Test
    void pipelinedRequestsWaitForTheirTurn() {
        server.http().get("/slow");
        Connection connection = putOff("GET", "/slow");
        connection.write(RawHttp.text("GET", "/free") + RawHttp.text("GET", "/slow"));
        assertThat(connection.hasAnswer()).isFalse();

        server.advance(Duration.ofSeconds(2));
        assertThat(connection.read().status()).isEqualTo(429);
        assertThat(connection.read().body()).isEqualTo("free");
        await().until(() -> late.waiting() == 1);
        server.advance(Duration.ofSeconds(2));
        assertThat(connection.read().header("X-RetryAfterMs")).isEqualTo("56000");
    }

    @Test
    void theBodyOfARejectedRequestIsSkipped() {
        server.http().get("/slow");
        Connection connection =
                connection().write("POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\nGET /x HTTP/");
        await().until(() -> late.waiting() == 1);
        server.advance(Duration.ofSeconds(2));
        assertThat(connection.read().status()).isEqualTo(429);
        assertThat(connection.get("/free").body()).isEqualTo("free");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/shop/%69tems", "/shop/a;x=1", "/shop/%C3%A4?q=%2e%2e", "/shop/%25"})
    void everySpellingOfAPathIsCharged(String path) {
        server.http().get("/shop/1");
        Connection refused = putOff("GET", path, "Origin: http://page");
        server.advance(Duration.ofSeconds(2));
        Response refusal = refused.read();
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("Access-Control-Allow-Origin")).isEqualTo("*");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/service", "/callable", "/deferred", "/future", "/forward", "/servlet", "/filter"})
    void theRejectionOfADeniedCallIsDelayed(String path, CapturedOutput output) {
        assertThat(server.http().get(path).status()).isEqualTo(200);
        int logged = output.getAll().length();
        Connection refused = putOff("GET", path);

        server.advance(Duration.ofSeconds(2));
        Response refusal = refused.read();
        assertThat(refusal.status()).isEqualTo(429);
        assertThat(refusal.header("X-RetryAfterMs")).isEqualTo("3598000");
        assertThat(refusal.body()).contains("[\"work\"]");
        assertThat(refused.get("/free").body()).isEqualTo("free");
        assertThat(output.getAll().substring(logged).lines().filter(line -> !line.contains("denied")))
                .isEmpty();
    }

    @Test
    void aRequestThatTheApplicationHandlesAsynchronouslyIsRejectedAtOnce() {
        assertThat(server.http().get("/own-async").body()).isEqualTo("done");
        assertThat(server.http().get("/own-async").status()).isEqualTo(429);
    }

    @Test
    void aRejectionIsAnsweredAtOnceIfAsynchronousRequestsAreNotSupported(CapturedOutput output) {
        assertThat(server.http().get("/sync").status()).isEqualTo(200);
        assertThat(server.http().get("/sync").status()).isEqualTo(429);
        assertThat(server.http().get("/sync").status()).isEqualTo(429);
        assertThat(output.getAll().lines().filter(line -> line.contains("doesn't support asynchronous requests")))
                .hasSize(1);
    }

    @Test
    void nothingIsPassedASecondTime() {
        server.http().get("/slow");
        AtomicInteger passes = server.bean(Others.class).passes;
        int before = passes.get();
        Connection refused = putOff("GET", "/slow");
        server.advance(Duration.ofSeconds(2));
        refused.read();
        assertThat(passes).as("behind the filters of all dispatches").hasValue(before);
    }

    @Test
    void theResponseIsCountedWithItsStatus() {
        server.http().get("/prompt");
        server.http().get("/prompt");
        server.http().get("/slow");
        double before = measured("429");
        Connection refused = putOff("GET", "/slow");
        server.advance(Duration.ofSeconds(2));
        refused.read();
        await().until(() -> measured("429") == before + 1);
    }

    private static double measured(String status) {
        return server.bean(MeterRegistry.class).get("http.server.requests").tag("status", status).timers().stream()
                .mapToLong(io.micrometer.core.instrument.Timer::count)
                .sum();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aClientThatIsGoneFreesItsPlace(boolean abruptly, CapturedOutput output) {
        server.http().get("/slow");
        Connection gone = putOff("GET", "/slow");
        int logged = output.getAll().length();
        if (abruptly) {
            gone.reset();
        } else {
            gone.close();
        }
        await().until(
                        () -> { // the container may lose a client that is gone before the request's thread has left
                            server.advance(Duration.ofMinutes(1));
                            return late.waiting() == 0;
                        });
        assertThat(server.http().get("/free").body()).isEqualTo("free");
        assertThat(output.getAll().substring(logged)).isEmpty();
    }

    private Connection putOff(String method, String target, String... headers) {
        int before = time.waiting();
        Connection connection = connection().write(RawHttp.text(method, target, headers));
        atOnce().until(() -> time.waiting() == before + 1);
        return connection;
    }

    private Connection connection() {
        Connection connection = server.http().open();
        connections.add(connection);
        return connection;
    }

    @Controller
    static class Api {

        private final Work work;

        Api(Work work) {
            this.work = work;
        }

        @CrossOrigin
        @ResponseBody
        @RequestMapping({"/slow", "/quick", "/both", "/prompt", "/keyed", "/costly", "/shop/{id}"})
        String limited() {
            return "limited";
        }

        @ResponseBody
        @RequestMapping({"/free", "/filter"})
        String free() {
            return "free";
        }

        @ResponseBody
        @RequestMapping({"/service", "/sync"})
        String service() {
            return work.once();
        }

        @RequestMapping("/forward")
        String forward() {
            return "forward:/service";
        }

        @ResponseBody
        @RequestMapping("/callable")
        Callable<String> callable() {
            return work::once;
        }

        @ResponseBody
        @RequestMapping("/deferred")
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>(60_000L);
            CompletableFuture.supplyAsync(work::once)
                    .whenComplete((text, failure) -> result.setErrorResult(failure == null ? text : failure));
            return result;
        }

        @ResponseBody
        @RequestMapping("/future")
        CompletableFuture<String> future() {
            return CompletableFuture.supplyAsync(work::once);
        }
    }

    static class Work {

        @RateLimited("work")
        public String once() {
            return "done";
        }
    }

    /** Router functions beside controllers. */
    static class Others {

        private final AtomicInteger passes = new AtomicInteger();

        @Bean
        ServletRegistrationBean<HttpServlet> servlet(Work work) {
            return servlet(work, "/servlet", false);
        }

        @Bean
        ServletRegistrationBean<HttpServlet> asyncServlet(Work work) {
            return servlet(work, "/own-async", true);
        }

        private static ServletRegistrationBean<HttpServlet> servlet(Work work, String path, boolean async) {
            HttpServlet servlet = new HttpServlet() {
                @Override
                protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                    if (async) {
                        request.startAsync();
                    }
                    try {
                        response.getWriter().write(work.once());
                    } finally {
                        if (async) {
                            request.getAsyncContext().complete();
                        }
                    }
                }
            };
            ServletRegistrationBean<HttpServlet> registration = new ServletRegistrationBean<>(servlet, path);
            registration.setName(path);
            return registration;
        }

        @Bean
        FilterRegistrationBean<Filter> calling(Work work) {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                work.once();
                chain.doFilter(request, response);
            });
            registration.addUrlPatterns("/filter");
            registration.setAsyncSupported(true);
            return registration;
        }

        @Bean
        FilterRegistrationBean<Filter> withoutAsync() {
            FilterRegistrationBean<Filter> registration =
                    new FilterRegistrationBean<>((request, response, chain) -> chain.doFilter(request, response));
            registration.addUrlPatterns("/sync");
            registration.setAsyncSupported(false);
            return registration;
        }

        @Bean
        FilterRegistrationBean<Filter> counting() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                passes.incrementAndGet();
                chain.doFilter(request, response);
            });
            registration.setDispatcherTypes(EnumSet.allOf(jakarta.servlet.DispatcherType.class));
            return registration;
        }
    }
}
