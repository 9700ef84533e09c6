package io.ratelimit.migration;

import static io.ratelimit.migration.RunningApplication.ALL_LIBRARIES;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.github.resilience4j.circuitbreaker.annotation.CircuitBreaker;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.github.resilience4j.ratelimiter.RequestNotPermitted;
import io.github.resilience4j.ratelimiter.annotation.RateLimiter;
import io.github.resilience4j.retry.annotation.Retry;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.resilience.annotation.Retryable;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** The examples of {@code docs/migrating/resilience4j.md}. */
@Tag("slow")
class Resilience4jMigrationTests {

    private static final MigrationPage PAGE = MigrationPage.of("resilience4j");
    private static final String OURS_OFF = "ratelimit.enabled=false";
    private static final String SHORT_PAUSES = "resilience4j.retry.instances.remote.wait-duration=1ms";

    @Test
    void aLimitedMethodIsRefusedAfterTheSameCalls() {
        try (RunningApplication application = RunningApplication.start(
                BeforeApplication.class, PAGE.before("A limited method"), OURS_OFF, ALL_LIBRARIES)) {
            Client client = application.client();
            assertThat(client.statuses(5, "/search")).containsExactly(200, 200, 200, 500, 500);
            assertThat(client.get("/searchOrBusy").body()).isEqualTo("busy");
        }
        try (RunningApplication application = RunningApplication.start(
                BeforeWithHandler.class, PAGE.before("A limited method"), OURS_OFF, ALL_LIBRARIES)) {
            Client client = application.client();
            assertThat(client.statuses(5, "/search")).containsExactly(200, 200, 200, 429, 429);
            HttpResponse<String> rejection = client.get("/search");
            assertThat(rejection.body()).isEqualTo("Too many requests");
            assertThat(rejection.headers().map()).doesNotContainKey("Retry-After");
        }
        try (RunningApplication application =
                RunningApplication.start(AfterApplication.class, PAGE.after("A limited method"))) {
            Client client = application.client();
            assertThat(client.statuses(5, "/search")).containsExactly(200, 200, 200, 429, 429);
            assertThat(client.get("/searchOrBusy").body()).isEqualTo("busy");
            HttpResponse<String> rejection = client.get("/search");
            assertThat(rejection.headers().firstValue("Retry-After")).hasValue("3600");
            assertThat(rejection.body()).contains("\"violated-policies\":[\"search\"]");

            application.time().advance(Duration.ofHours(1));
            assertThat(client.statuses(4, "/search")).containsExactly(200, 200, 200, 429);
        }
    }

    @Test
    void onlyResilience4jHoldsTheThreadOfACallThatCannotBeInTime() {
        String longPeriod = PAGE.before("Waiting").replace("10s", "10m"); // which doesn't end during the test
        try (RunningApplication application =
                RunningApplication.start(BeforeApplication.class, longPeriod, OURS_OFF, ALL_LIBRARIES)) {
            Before before = application.bean(Before.class);
            before.search("a");
            long began = System.nanoTime();
            assertThatExceptionOfType(RequestNotPermitted.class).isThrownBy(() -> before.search("b"));
            assertThat(Duration.ofNanos(System.nanoTime() - began)).isGreaterThanOrEqualTo(Duration.ofMillis(500));
        }
        try (RunningApplication application = RunningApplication.start(AfterApplication.class, PAGE.after("Waiting"))) {
            After after = application.bean(After.class);
            after.search("a");
            // The clock stands still, so a call that waited would never return.
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> after.search("b"))
                    .satisfies(refused -> assertThat(refused.retryAfter()).isEqualTo(Duration.ofSeconds(10)));
        }
    }

    @Test
    void aLimiterForEachUserIsAKey() {
        List<String> users = List.of("alice", "alice", "alice", "bob");

        try (RunningApplication application = RunningApplication.start(
                BeforeApplication.class, PAGE.before("A limit for each user"), OURS_OFF, ALL_LIBRARIES)) {
            RateLimiterRegistry registry = application.bean(RateLimiterRegistry.class);
            assertThat(users.stream().map(user -> Before.allows(registry, user)))
                    .containsExactly(true, true, false, true);
            Before before = application.bean(Before.class);
            assertThat(users.stream().map(user -> answers(() -> before.searchFor(user))))
                    .containsExactly(true, true, false, true);
            assertThat(registry.getAllRateLimiters())
                    .extracting(limiter -> limiter.getName())
                    .contains("alice", "bob");
        }
        try (RunningApplication application =
                RunningApplication.start(AfterApplication.class, PAGE.after("A limit for each user"))) {
            Throttlers throttlers = application.bean(Throttlers.class);
            assertThat(users.stream().map(user -> After.allows(throttlers, user)))
                    .containsExactly(true, true, false, true);
            assertThat(Stream.of(throttlers.size("search"))).containsExactly(2L);
            throttlers.reset("search", "alice");
            After after = application.bean(After.class);
            assertThat(users.stream().map(user -> answers(() -> after.searchFor(user))))
                    .containsExactly(true, true, false, true);
        }
    }

    private static boolean answers(Runnable call) {
        try {
            call.run();
            return true;
        } catch (RequestNotPermitted | RateLimitExceededException refused) {
            return false;
        }
    }

    @Test
    void eachAttemptOfARetriedCallIsChargedOnlyInTheOldOrder() {
        try (RunningApplication application = RunningApplication.start(
                BeforeApplication.class, PAGE.before("A limited method"), OURS_OFF, ALL_LIBRARIES, SHORT_PAUSES)) {
            Before before = application.bean(Before.class);
            assertThatIllegalStateException().isThrownBy(before::fetch);
            assertThat(before.attempts()).isEqualTo(3);
            assertThatExceptionOfType(RequestNotPermitted.class).isThrownBy(() -> before.search("a"));

            assertThat(before.fetchOrElse()).isEqualTo("something else");
        }
        try (RunningApplication application = RunningApplication.start(
                AfterApplication.class, PAGE.after("A limited method"), ALL_LIBRARIES, SHORT_PAUSES)) {
            After after = application.bean(After.class);
            assertThatIllegalStateException().isThrownBy(after::fetch);
            assertThat(after.attempts()).isEqualTo(3);
            assertThat(application.bean(Throttlers.class).snapshot("search").available())
                    .isEqualTo(2);

            assertThatIllegalStateException().isThrownBy(after::fetch);
            assertThatIllegalStateException().isThrownBy(after::fetch);
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(after::fetch);
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(after::fetchOrElse);
            assertThat(after.attempts()).isEqualTo(9);
        }
        try (RunningApplication application = RunningApplication.start(
                AfterApplication.class, PAGE.after("Beside retry and circuit breaker"), ALL_LIBRARIES, SHORT_PAUSES)) {
            After after = application.bean(After.class);
            assertThatIllegalStateException().isThrownBy(after::fetch);
            assertThat(after.attempts()).isEqualTo(3);
            assertThat(application.bean(Throttlers.class).snapshot("search").available())
                    .isZero();
            assertThat(after.fetchOrElse()).isEqualTo("something else");
        }
        try (RunningApplication application =
                RunningApplication.start(AfterWithRetryable.class, PAGE.after("A limited method"))) {
            After after = application.bean(After.class);
            assertThatIllegalStateException().isThrownBy(after::fetchAgain);
            assertThat(after.attempts()).isEqualTo(3);
            assertThat(application.bean(Throttlers.class).snapshot("search").available())
                    .isZero();
        }
    }

    @Import({GreetingApplication.class, Before.class})
    static class BeforeApplication {}

    @Import({BeforeApplication.class, RefusalHandler.class})
    static class BeforeWithHandler {}

    @Import({GreetingApplication.class, After.class, UncalledHandler.class})
    static class AfterApplication {}

    @EnableResilientMethods
    @Import(AfterApplication.class)
    static class AfterWithRetryable {}

    @RestControllerAdvice
    static class RefusalHandler {

        @ExceptionHandler
        @ResponseStatus(HttpStatus.TOO_MANY_REQUESTS)
        String refused(RequestNotPermitted refused) {
            return "Too many requests";
        }
    }

    @RestControllerAdvice
    static class UncalledHandler {

        @ExceptionHandler
        String refused(RateLimitExceededException refused) {
            return "never called";
        }
    }

    @RestController
    static class Before {

        private int attempts;

        static boolean allows(RateLimiterRegistry registry, String user) {
            boolean allowed = registry.rateLimiter("search-" + user, "search").acquirePermission();
            return allowed;
        }

        @GetMapping("/search")
        @RateLimiter(name = "search")
        public String search(String text) {
            return "found " + text;
        }

        @GetMapping("/searchOrBusy")
        @RateLimiter(name = "search", fallbackMethod = "busy")
        public String searchOrBusy(String text) {
            return "found " + text;
        }

        String busy(String text, RequestNotPermitted refused) {
            return "busy";
        }

        @RateLimiter(name = "#user", configuration = "search")
        public String searchFor(String user) {
            return "found for " + user;
        }

        @Retry(name = "remote")
        @RateLimiter(name = "search")
        public String fetch() {
            attempts++;
            throw new IllegalStateException("the remote system failed");
        }

        @CircuitBreaker(name = "remote", fallbackMethod = "somethingElse")
        @RateLimiter(name = "search")
        public String fetchOrElse() {
            return "fetched";
        }

        String somethingElse(Exception failure) {
            return "something else";
        }

        public int attempts() {
            return attempts;
        }
    }

    @RestController
    static class After {

        private int attempts;

        static boolean allows(Throttlers throttlers, String user) {
            boolean allowed = throttlers.get("search").forKey(user).decide(1).allowed();
            return allowed;
        }

        @GetMapping("/search")
        @RateLimited("search")
        public String search(String text) {
            return "found " + text;
        }

        @GetMapping("/searchOrBusy")
        @RateLimited(policy = "search", fallback = "busy")
        public String searchOrBusy(String text) {
            return "found " + text;
        }

        String busy(String text, RateLimitExceededException denied) {
            return "busy";
        }

        @RateLimited(policy = "search", key = "#user")
        public String searchFor(String user) {
            return "found for " + user;
        }

        @Retry(name = "remote")
        @RateLimited("search")
        public String fetch() {
            attempts++;
            throw new IllegalStateException("the remote system failed");
        }

        @CircuitBreaker(name = "remote", fallbackMethod = "somethingElse")
        @RateLimited("search")
        public String fetchOrElse() {
            return "fetched";
        }

        String somethingElse(Exception failure) {
            return "something else";
        }

        @Retryable(maxRetries = 2, delay = 1)
        @RateLimited("search")
        public String fetchAgain() {
            attempts++;
            throw new IllegalStateException("the remote system failed");
        }

        public int attempts() {
            return attempts;
        }
    }
}
