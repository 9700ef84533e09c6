package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import io.ratelimit.annotation.RateLimited;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionFactory;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** Requests that are settled at their actual cost, on a real Tomcat. No token comes back during a test. */
abstract class SettleContract {

    static final String YAML = """
            ratelimit:
              policies:
                attribute: { rate: 100/1d, cost: 10, settle: "attribute:tokens", paths: [/attribute/**, /annotated/both] }
                header: { rate: 100/1d, cost: 10, settle: "response-header:X-Tokens", paths: /header }
                code: { rate: 100/1d, cost: 10, settle: code, paths: /code/** }
                other-code: { rate: 100/1d, cost: 10, settle: code, paths: /other }
                capped: { rate: 100/1d, cost: 10, max-cost: 40, settle: "attribute:tokens", paths: /capped }
                shadow: { rate: 100/1d, cost: 10, settle: "attribute:tokens", paths: /shadow, mode: shadow }
                refunded: { rate: 100/1d, cost: 10, settle: "attribute:tokens", paths: /refunded, refund-on: 404 }
                narrow: { rate: 1/1d, cost: 1, paths: /attribute/narrow }
                plain: { rate: 100/1d, cost: 10, paths: /plain }
                calls: { rate: 100/1d, cost: 10, applies-to: annotated }
                kept: { rate: 100/1d, cost: 10, settle: "response-header:Retry-After", paths: /rejected/**, phase: before-authentication }
                kept-attribute: { rate: 100/1d, cost: 10, settle: "attribute:tokens", paths: /rejected/**, phase: before-authentication }
                kept-code: { rate: 100/1d, cost: 10, settle: code, paths: /rejected/call, phase: before-authentication }
                late: { rate: 1/1d, paths: /rejected/late, phase: after-authentication }
                inner: { rate: 1/1d, applies-to: annotated }
            """;

    abstract TestServer server();

    @BeforeEach
    void empty() {
        Throttlers throttlers = server().bean(Throttlers.class);
        throttlers
                .all()
                .forEach(throttler -> throttlers.reset(throttler.policy().name()));
        server().bean(Events.class).events.clear();
    }

    private void settled(String policy, String path, long left) {
        assertThat(server().http().get(path).status()).as(path).isEqualTo(200);
        hasLeft(policy, path, left);
    }

    /** A settlement on Redis may end after its request. */
    private void hasLeft(String policy, String path, long left) {
        server().awaitEnds();
        atOnce().untilAsserted(
                        () -> assertThat(server().available(policy)).as(path).isEqualTo(left));
    }

    private static ConditionFactory atOnce() {
        return Awaitility.await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(5));
    }

    private Api api() {
        return server().bean(Api.class);
    }

    private List<String> events() {
        return server().bean(Events.class).events;
    }

    /** A bucket on Redis shows a settlement before the listener hears of it. */
    private void awaitEvents(String... expected) {
        atOnce().untilAsserted(() -> assertThat(events()).containsExactlyInAnyOrder(expected));
    }

    @ParameterizedTest
    @CsvSource({
        "attribute, /attribute/number?tokens=3",
        "attribute, /attribute/decimal?tokens=2.2",
        "attribute, /attribute/text?tokens=3",
        "attribute, /attribute/callable?tokens=3",
        "attribute, /attribute/future?tokens=3",
        "header, /header?tokens=3",
        "code, /code/now?tokens=3",
        "code, /code/twice?tokens=3",
        "code, /code/streaming?tokens=3",
        "code, /code/events?tokens=3",
        "capped, /capped?tokens=3",
        "shadow, /shadow?tokens=3",
        "refunded, /refunded?tokens=3",
        "calls, /annotated/now?tokens=3",
        "calls, /annotated/future?tokens=3",
        "calls, /annotated/both?tokens=3",
    })
    void theActualCostReplacesTheEstimate(String policy, String path) {
        settled(policy, path, 97);
        settled(policy, path.replaceAll("tokens=[0-9.]*", "tokens=0"), 97);
        settled(policy, path.replaceAll("tokens=[0-9.]*", "tokens=30"), 67);
        Awaitility.await().until(() -> Collections.frequency(events(), policy + " SETTLED") == 3);
        assertThat(events()).doesNotContain(policy + " SETTLE_FAILURE");
    }

    @ParameterizedTest
    @CsvSource({
        "attribute, /attribute/number?tokens=120",
        "header, /header?tokens=120",
        "code, /code/events?tokens=120",
        "calls, /annotated/now?tokens=120"
    })
    void aBucketInDebtRejectsRequests(String policy, String path) {
        settled(policy, path, 0);
        assertThat(server().http().get(path).status()).isEqualTo(429);
        assertThat(server().bean(Throttlers.class).snapshot(policy).resetAfter())
                .isBetween(Duration.ofHours(28), Duration.ofHours(29));
    }

    @ParameterizedTest
    @CsvSource({
        "attribute, /attribute/none",
        "header, /attribute/none?header",
        "code, /code/none",
        "plain, /plain?tokens=3",
        "calls, /annotated/none"
    })
    void withoutAnActualCostTheEstimateStands(String policy, String path) {
        settled(policy, path.replace("/attribute/none?header", "/header"), 90);
        assertThat(events()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"-1", "-0.5", "NaN", "1e13", "1000000000001", "many", "true"})
    void aValueThatIsNoCostIsCountedAndTheEstimateStands(String value) {
        settled("attribute", "/attribute/text?tokens=" + value, 90);
        settled("header", "/header?tokens=" + value, 90);
        settled("calls", "/annotated/text?tokens=" + value, 90);
        awaitEvents("attribute SETTLE_FAILURE", "header SETTLE_FAILURE", "calls SETTLE_FAILURE");
    }

    @Test
    void codeLearnsThatItsCostIsNoCost() {
        settled("code", "/code/now?tokens=-1", 90);
        assertThat(api().accepted).isFalse();
        settled("code", "/code/now?tokens=1000000000001", 80);
        assertThat(api().accepted).isFalse();
        awaitEvents("code SETTLE_FAILURE", "code SETTLE_FAILURE");
        settled("code", "/code/now?tokens=5", 75);
        assertThat(api().accepted).isTrue();
    }

    @Test
    void aCostAfterTheResponseIsIgnored() {
        settled("code", "/code/none", 90);
        assertThat(api().cost.settle("code", 3)).isFalse();
        assertThat(server().available("code")).isEqualTo(90);
        awaitEvents("code SETTLE_FAILURE");
    }

    @Test
    void aPolicyThatDidNotChargeTheRequestIsNotSettled() {
        settled("code", "/code/none", 90);
        assertThat(api().cost.settle("other-code", 3)).isFalse();
        assertThat(server().available("other-code")).isEqualTo(100);
        assertThat(events()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"unknown", "header", "calls"})
    void aPolicyThatIsNotSettledByCodeIsAnErrorThatNamesTheOthers(String policy) {
        settled("code", "/code/none", 90);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> api().cost.settle(policy, 3))
                .withMessage("no throttle policy '" + policy
                        + "' has 'settle: code'; those that do are: 'code', 'kept-code', 'other-code'");
    }

    @Test
    void aRefundWins() {
        assertThat(server().http().get("/refunded?tokens=50&status=404").status())
                .isEqualTo(404);
        hasLeft("refunded", "404", 100);
    }

    @Test
    void theMaximumCutsTheActualCost() {
        settled("capped", "/capped?tokens=90", 60);
    }

    @Test
    void aRejectedRequestIsNotSettled() {
        settled("attribute", "/attribute/narrow?tokens=3", 97);
        awaitEvents("attribute SETTLED");
        events().clear();
        assertThat(server().http().get("/attribute/narrow?tokens=3").status()).isEqualTo(429);
        assertThat(server().available("attribute")).isEqualTo(97);
        assertThat(events()).isEmpty();
    }

    /** An early policy keeps its tokens, and the rejection has a header that would be a cost. */
    @Test
    void theRejectionByALaterPolicyIsNotSettled() {
        assertThat(server().http().get("/rejected/late").status()).isEqualTo(200);
        RawHttp.Response rejected = server().http().get("/rejected/late");
        assertThat(rejected.status()).isEqualTo(429);
        assertThat(rejected.header("Retry-After")).isNotNull();
        hasLeft("kept", "the header of the rejection", 80);
        hasLeft("kept-attribute", "the attribute that a filter of the application set", 97 - 10);
        awaitEvents("kept-attribute SETTLED");
    }

    @Test
    void aHandlerWhoseInnerCallIsDeniedIsSettledOnceByItsCostsAndNotByTheHeadersOfTheRejection() {
        assertThat(server().http().get("/rejected/call?tokens=3").status()).isEqualTo(200);
        hasLeft("kept-code", "not rejected", 97);
        awaitEvents("kept-code SETTLED", "kept-attribute SETTLED");
        events().clear();
        RawHttp.Response rejected = server().http().get("/rejected/call?tokens=4");
        assertThat(rejected.status()).isEqualTo(429);
        assertThat(rejected.header("Retry-After")).isNotNull();
        hasLeft("kept-code", "set before the call was denied", 93);
        hasLeft("kept-attribute", "the attribute", 97 - 3);
        assertThat(server().available("kept")).isEqualTo(80);
        assertThat(server().available("inner")).isZero();
        awaitEvents("kept-code SETTLED", "kept-attribute SETTLED");
    }

    @Test
    void anExceptionKeepsACostThatWasSetBefore() {
        assertThat(server().http().get("/attribute/exception?tokens=3").status())
                .isEqualTo(500);
        hasLeft("attribute", "set before", 97);
        assertThat(server().http().get("/attribute/exception").status()).isEqualTo(500);
        hasLeft("attribute", "not set", 87);
        assertThat(server().http().get("/annotated/exception").status()).isEqualTo(500);
        hasLeft("calls", "no result", 90);
    }

    @Test
    void aTimeoutKeepsTheEstimate() {
        assertThat(server().http().get("/code/timeout").status()).isEqualTo(503);
        server().awaitEnds();
        assertThat(api().cost.settle("code", 3)).isFalse();
        assertThat(server().available("code")).isEqualTo(90);
    }

    @Test
    void anAsynchronousRequestIsSettledWhenItsResponseIsComplete() throws Exception {
        try (RawHttp.Connection connection = server().http().open()) {
            connection.write(RawHttp.text("GET", "/code/waiting", "Connection: close"));
            api().waiting.await();
            assertThat(api().cost.settle("code", 3)).isTrue();
            assertThat(server().available("code")).isEqualTo(90);
            api().answer.countDown();
            assertThat(connection.readToEnd().status()).isEqualTo(200);
        }
        hasLeft("code", "complete", 97);
    }

    /** The settlements of the application's policies. */
    static final class Events implements ThrottleListener {

        final List<String> events = new CopyOnWriteArrayList<>();

        @Override
        public void decided(Decision decision) {}

        @Override
        public void eventOccurred(ThrottlePolicy policy, Event event) {
            events.add(policy.name() + " " + event);
        }
    }

    record Usage(Object tokens) {}

    static class Calls {

        @RateLimited(policy = "calls", settle = "#result.tokens")
        public Usage now(Object tokens) {
            return new Usage(tokens);
        }

        @RateLimited(policy = "calls", settle = "#result.tokens + #more - 1")
        public CompletableFuture<Usage> future(long tokens, int more) {
            return CompletableFuture.supplyAsync(() -> new Usage(tokens));
        }

        @RateLimited("inner")
        public String inner() {
            return "done";
        }

        @RateLimited(policy = "calls", settle = "#result")
        public Long none() {
            return null;
        }

        @RateLimited(policy = "calls", settle = "#result")
        public long exception() {
            throw new IllegalStateException("on purpose");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Application {

        @Bean
        Events events() {
            return new Events();
        }

        /** Sets a cost before all filters of the limiter. */
        @Bean
        FilterRegistrationBean<Filter> costs() {
            FilterRegistrationBean<Filter> costs = new FilterRegistrationBean<>((request, response, chain) -> {
                request.setAttribute("tokens", 3);
                chain.doFilter(request, response);
            });
            costs.setOrder(Ordered.HIGHEST_PRECEDENCE);
            costs.addUrlPatterns("/rejected/*");
            return costs;
        }

        @Bean
        Calls calls() {
            return new Calls();
        }

        @Bean
        Api api(Calls calls) {
            return new Api(calls);
        }
    }

    @RestController
    static class Api {

        final CountDownLatch waiting = new CountDownLatch(1);
        final CountDownLatch answer = new CountDownLatch(1);
        private final Calls calls;
        volatile ActualCost cost;
        volatile boolean accepted;

        Api(Calls calls) {
            this.calls = calls;
        }

        @GetMapping({"/attribute/number", "/attribute/narrow", "/capped", "/shadow", "/plain"})
        String number(long tokens, HttpServletRequest request) {
            request.setAttribute("tokens", tokens);
            return "done";
        }

        @GetMapping("/attribute/decimal")
        String decimal(BigDecimal tokens, HttpServletRequest request) {
            request.setAttribute("tokens", tokens);
            return "done";
        }

        @GetMapping("/attribute/text")
        String text(String tokens, HttpServletRequest request) {
            request.setAttribute("tokens", tokens.equals("NaN") ? (Object) Double.NaN : tokens);
            return "done";
        }

        @GetMapping({"/attribute/none", "/code/none"})
        String none(ActualCost cost) {
            this.cost = cost;
            return "done";
        }

        @GetMapping("/attribute/callable")
        Callable<String> callable(long tokens, HttpServletRequest request) {
            return () -> number(tokens, request);
        }

        @GetMapping("/attribute/future")
        CompletableFuture<String> future(long tokens, HttpServletRequest request) {
            return CompletableFuture.supplyAsync(() -> number(tokens, request));
        }

        @GetMapping("/attribute/exception")
        String exception(@RequestParam(required = false) Long tokens, HttpServletRequest request)
                throws ServletException {
            request.setAttribute("tokens", tokens);
            throw new ServletException("on purpose");
        }

        @GetMapping("/refunded")
        void refunded(
                long tokens,
                @RequestParam(defaultValue = "200") int status,
                HttpServletRequest request,
                HttpServletResponse response) {
            number(tokens, request);
            response.setStatus(status);
        }

        /** Sets the header while the response can still have one; the body exceeds the buffer. */
        @GetMapping("/header")
        void header(@RequestParam(required = false) String tokens, HttpServletResponse response) throws IOException {
            if (tokens != null) {
                response.setHeader("X-Tokens", tokens);
            }
            response.getOutputStream().write(new byte[100_000]);
        }

        @GetMapping("/rejected/late")
        String late() {
            return "done";
        }

        @GetMapping("/rejected/call")
        String call(long tokens, ActualCost cost) {
            cost.settle("kept-code", tokens);
            return calls.inner();
        }

        @GetMapping("/code/now")
        String now(long tokens, ActualCost cost) {
            accepted = cost.settle("code", tokens);
            return "done";
        }

        @GetMapping("/code/twice")
        String twice(long tokens, ActualCost first, ActualCost second) {
            first.settle("code", 55);
            second.settle("code", tokens);
            return "done";
        }

        @GetMapping("/code/streaming")
        StreamingResponseBody streaming(long tokens, ActualCost cost) {
            return out -> {
                out.write("streaming".getBytes(StandardCharsets.UTF_8));
                cost.settle("code", tokens);
            };
        }

        @GetMapping("/code/events")
        SseEmitter events(long tokens, ActualCost cost) {
            SseEmitter events = new SseEmitter(10_000L);
            Thread thread = new Thread(() -> {
                try {
                    events.send("first");
                    cost.settle("code", tokens);
                    events.send("last");
                    events.complete();
                } catch (IOException failed) {
                    events.completeWithError(failed);
                }
            });
            thread.setDaemon(true);
            thread.start();
            return events;
        }

        @GetMapping("/code/timeout")
        DeferredResult<String> timeout(ActualCost cost) {
            this.cost = cost;
            return new DeferredResult<>(200L);
        }

        @GetMapping("/code/waiting")
        DeferredResult<String> waiting(ActualCost cost) {
            this.cost = cost;
            DeferredResult<String> result = new DeferredResult<>(60_000L);
            CompletableFuture.runAsync(() -> {
                waiting.countDown();
                await(answer);
                result.setResult("waited");
            });
            return result;
        }

        private static void await(CountDownLatch latch) {
            try {
                latch.await();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }

        @GetMapping({"/annotated/{how}", "/annotated/both"})
        Object annotated(
                @PathVariable(required = false) String how,
                @RequestParam(required = false) String tokens,
                HttpServletRequest request)
                throws Exception {
            if (how == null) {
                number(Long.parseLong(tokens), request);
            }
            return switch (how == null ? "now" : how) {
                case "now" -> calls.now(Long.valueOf(tokens)).toString();
                case "text" -> calls.now(tokens).toString();
                case "future" -> calls.future(Long.parseLong(tokens), 1).get().toString();
                case "none" -> "none " + calls.none();
                default -> calls.exception();
            };
        }
    }
}
