package io.ratelimit.migration;

import static io.ratelimit.migration.RunningApplication.ALL_LIBRARIES;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.github.resilience4j.bulkhead.BulkheadFullException;
import io.github.resilience4j.bulkhead.annotation.Bulkhead;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitExceededException;
import io.ratelimit.annotation.RateLimited;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.annotation.Import;
import org.springframework.resilience.InvocationRejectedException;
import org.springframework.resilience.annotation.ConcurrencyLimit;
import org.springframework.resilience.annotation.ConcurrencyLimit.ThrottlePolicy;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The examples of {@code docs/migrating/bulkhead.md}. */
@Tag("slow")
@Timeout(120)
class BulkheadMigrationTests {

    private static final MigrationPage PAGE = MigrationPage.of("bulkhead");
    private static final String OURS_OFF = "ratelimit.enabled=false";
    private static final Reports reports = new Reports();

    private final List<CompletableFuture<?>> running = new ArrayList<>();

    /** Reports that take until they are finished. */
    static final class Reports {

        private final Semaphore begun = new Semaphore(0);
        private volatile CountDownLatch finished = new CountDownLatch(1);

        String create() {
            CountDownLatch until = finished;
            begun.release();
            try {
                until.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            return "report";
        }

        void finish() {
            CountDownLatch before = finished;
            finished = new CountDownLatch(1);
            before.countDown();
        }
    }

    @AfterEach
    void finish() {
        reports.finish();
        running.forEach(CompletableFuture::join);
        reports.begun.drainPermits();
    }

    /** Runs a call until it creates its report. */
    private <T> CompletableFuture<T> hold(Supplier<T> call) {
        CompletableFuture<T> result = later(call);
        reports.begun.acquireUninterruptibly();
        return result;
    }

    private <T> CompletableFuture<T> later(Supplier<T> call) {
        CompletableFuture<T> result = CompletableFuture.supplyAsync(call, task -> new Thread(task).start());
        running.add(result);
        return result;
    }

    @Test
    void aLimitedMethodIsRefusedWhileAsManyCallsRun() {
        try (RunningApplication application = RunningApplication.start(
                BeforeApplication.class, PAGE.before("A limited method"), OURS_OFF, ALL_LIBRARIES)) {
            HttpResponse<String> refused = refused(application.client());
            assertThat(refused.statusCode()).isEqualTo(500);
        }
        try (RunningApplication application =
                RunningApplication.start(AfterApplication.class, PAGE.after("A limited method"))) {
            HttpResponse<String> refused = refused(application.client());
            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.headers().firstValue("Retry-After")).hasValue("1");
        }
    }

    private HttpResponse<String> refused(Client client) {
        CompletableFuture<HttpResponse<String>> first = hold(() -> client.get("/export"));
        hold(() -> client.get("/export"));
        HttpResponse<String> refused = client.get("/export");
        assertThat(client.get("/exportOrBusy").body()).isEqualTo("busy");

        reports.finish();
        assertThat(first.join().body()).isEqualTo("report");
        Awaitility.await().untilAsserted(() -> {
            CompletableFuture<HttpResponse<String>> next = later(() -> client.get("/exportOrBusy"));
            Awaitility.await().until(() -> next.isDone() || reports.begun.tryAcquire());
            assertThat(next).isNotDone();
        });
        reports.finish();
        running.forEach(CompletableFuture::join);
        return refused;
    }

    @Test
    void aWaitingCallGetsThePlaceOfTheOneThatEnds() {
        try (RunningApplication application =
                RunningApplication.start(BeforeApplication.class, PAGE.before("Waiting"), OURS_OFF, ALL_LIBRARIES)) {
            waitForAPlace(application.bean(Before.class)::export);
        }
        try (RunningApplication application = RunningApplication.start(AfterApplication.class, PAGE.after("Waiting"))) {
            After after = application.bean(After.class);
            waitForAPlace(after::export);

            hold(after::export);
            CompletableFuture<String> tooLong = later(after::export);
            Awaitility.await().until(() -> application.time().waiting() == 1);
            application.time().advance(Duration.ofSeconds(30));
            running.remove(tooLong);
            assertThatExceptionOfType(CompletionException.class)
                    .isThrownBy(tooLong::join)
                    .withCauseInstanceOf(RateLimitExceededException.class);
            reports.finish();
        }
    }

    private void waitForAPlace(Supplier<String> export) {
        hold(export);
        CompletableFuture<String> waiting = later(export);
        reports.finish();
        reports.begun.acquireUninterruptibly();
        reports.finish();
        assertThat(waiting.join()).isEqualTo("report");
    }

    @Test
    void aLimitForEachUserIsAKey() {
        try (RunningApplication application = RunningApplication.start(
                BeforeApplication.class, PAGE.before("A limit for each user"), OURS_OFF, ALL_LIBRARIES)) {
            limitEachUser("alice", "bob", application.bean(Before.class)::exportFor);
        }
        try (RunningApplication application =
                RunningApplication.start(AfterApplication.class, PAGE.after("A limit for each user"))) {
            limitEachUser("alice", "bob", application.bean(After.class)::exportFor);
            assertThat(application.bean(Throttlers.class).inFlight("export")).isZero();
        }
    }

    private void limitEachUser(String user, String other, UnaryOperator<String> export) {
        hold(() -> export.apply(user));
        hold(() -> export.apply(user));
        assertThat(export.apply(user)).isEqualTo("busy");
        CompletableFuture<String> ofOther = hold(() -> export.apply(other));
        reports.finish();
        assertThat(ofOther.join()).isEqualTo("report");
        running.forEach(CompletableFuture::join);
    }

    @Test
    void springsLimitWaitsWithoutAnEndOrRejectsAtOnce() {
        try (RunningApplication application =
                RunningApplication.start(BeforeApplication.class, "", OURS_OFF, ALL_LIBRARIES)) {
            Before before = application.bean(Before.class);
            waitForAPlace(before::create);
            rejectAtOnce(before::createAtOnce, InvocationRejectedException.class);
        }
        try (RunningApplication application =
                RunningApplication.start(AfterApplication.class, PAGE.after("A limited method"))) {
            After after = application.bean(After.class);
            waitForAPlace(after::create);
            rejectAtOnce(after::createAtOnce, RateLimitExceededException.class);
        }
    }

    private void rejectAtOnce(Supplier<String> create, Class<? extends Exception> rejection) {
        CompletableFuture<String> running = hold(create);
        assertThatExceptionOfType(rejection).isThrownBy(create::get);
        reports.finish();
        assertThat(running.join()).isEqualTo("report");
    }

    @EnableResilientMethods
    @Import({GreetingApplication.class, Before.class})
    static class BeforeApplication {}

    @Import({GreetingApplication.class, After.class})
    static class AfterApplication {}

    @RestController
    static class Before {

        @GetMapping("/export")
        @Bulkhead(name = "export")
        public String export() {
            return reports.create();
        }

        @GetMapping("/exportOrBusy")
        @Bulkhead(name = "export", fallbackMethod = "busy")
        public String exportOrBusy() {
            return reports.create();
        }

        String busy(BulkheadFullException refused) {
            return "busy";
        }

        @Bulkhead(name = "#user", configuration = "export", fallbackMethod = "busyFor")
        public String exportFor(String user) {
            return reports.create();
        }

        String busyFor(String user, BulkheadFullException refused) {
            return "busy";
        }

        @ConcurrencyLimit(1)
        public String create() {
            return reports.create();
        }

        @ConcurrencyLimit(value = 1, policy = ThrottlePolicy.REJECT)
        public String createAtOnce() {
            return reports.create();
        }
    }

    @RestController
    static class After {

        @GetMapping("/export")
        @RateLimited("export")
        public String export() {
            return reports.create();
        }

        @GetMapping("/exportOrBusy")
        @RateLimited(policy = "export", fallback = "busy")
        public String exportOrBusy() {
            return reports.create();
        }

        String busy(RateLimitExceededException denied) {
            return "busy";
        }

        @RateLimited(policy = "export", key = "#user", fallback = "busyFor")
        public String exportFor(String user) {
            return reports.create();
        }

        String busyFor(String user, RateLimitExceededException denied) {
            return "busy";
        }

        @RateLimited(inFlight = "1", maxWait = "30s")
        public String create() {
            return reports.create();
        }

        @RateLimited(inFlight = "1")
        public String createAtOnce() {
            return reports.create();
        }
    }
}
