package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.Throttlers;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.http.ResponseEntity;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import reactor.core.publisher.ConnectableFlux;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.ParallelFlux;
import reactor.core.publisher.Sinks;

/** Calls of annotated methods that hold a slot until they are complete. */
class RateLimitedInFlightTests extends AnnotatedCalls {

    private static final String[] ADDRESSES = {
        "ratelimit.policies.addresses.rate=2/1h",
        "ratelimit.policies.addresses.key=ip",
        "ratelimit.policies.addresses.applies-to=annotated",
        "ratelimit.policies.addresses.overrides[0].keys=10.0.0.0/8",
        "ratelimit.policies.addresses.overrides[0].in-flight=2"
    };

    static class Jobs {

        @RateLimited(name = "run", inFlight = "1", key = "#key")
        public Object run(String key, Supplier<Object> work) {
            return work.get();
        }

        @RateLimited(name = "both", rate = "10/1h", inFlight = "1", fallback = "busy")
        public String both(Supplier<String> work) {
            return work.get();
        }

        String busy(Supplier<String> work, RateLimitExceededException denied) {
            return denied.getMessage();
        }

        @RateLimited("gpu")
        public CompletableFuture<String> gpu(CompletableFuture<String> result) {
            return result;
        }

        @RateLimited(name = "mono", rate = "100/1h", inFlight = "1", settle = "#result")
        @RateLimited("export")
        public Mono<Integer> mono(Mono<Integer> result) {
            return result;
        }
    }

    private void run(BiConsumer<ConfigurableApplicationContext, Jobs> calls) {
        runner.withBean(Jobs.class)
                .withPropertyValues("ratelimit.policies.gpu.in-flight=1", "ratelimit.policies.gpu.applies-to=annotated")
                .run(context -> calls.accept(context, context.getBean(Jobs.class)));
    }

    private static int inFlight(ConfigurableApplicationContext context, String policy) {
        return context.getBean(Throttlers.class).inFlight(policy);
    }

    @Test
    void aCallIsCountedUntilItReturns() {
        run((context, jobs) -> {
            Object result = jobs.run("a", () -> {
                assertThat(inFlight(context, "run")).isEqualTo(1);
                assertDenied(() -> jobs.run("a", () -> ""));
                return jobs.run("b", () -> "inner");
            });
            assertThat(result).isEqualTo("inner");
            assertThat(inFlight(context, "run")).isZero();
        });
    }

    @Test
    void aCallThatThrowsIsReleased() {
        run((context, jobs) -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> jobs.run("a", () -> {
                        throw new IllegalStateException();
                    }));
            assertThat(inFlight(context, "run")).isZero();
        });
    }

    @Test
    void aFallbackAnswersAndADenialTakesNoToken() {
        run((context, jobs) -> {
            String inner = jobs.both(() -> jobs.both(() -> "second"));
            assertThat(inner).isEqualTo("Too many calls are in flight for 'both' policy, please retry after 1000 ms.");
            assertThat(available(context, "both")).isEqualTo(9);
            assertThat(inFlight(context, "both")).isZero();
        });
    }

    @Test
    void aCallRunsUntilItsFutureIsComplete() {
        run((context, jobs) -> {
            CompletableFuture<String> first = new CompletableFuture<>();
            jobs.gpu(first);
            assertDenied(() -> jobs.gpu(new CompletableFuture<>()));
            first.complete("done");
            assertThat(inFlight(context, "gpu")).isZero();

            CompletableFuture<String> failing = new CompletableFuture<>();
            jobs.gpu(failing);
            assertThat(inFlight(context, "gpu")).isEqualTo(1);
            failing.completeExceptionally(new IllegalStateException());
            assertThat(inFlight(context, "gpu")).isZero();
        });
    }

    @Test
    void aCallRunsUntilItsMonoIsCompleteOrCancelled() {
        run((context, jobs) -> {
            Sinks.One<Integer> sink = Sinks.one();
            Mono<Integer> result = jobs.mono(sink.asMono());
            assertThat(inFlight(context, "mono")).isEqualTo(1);
            CompletableFuture<Integer> value = result.toFuture();
            sink.tryEmitValue(1);
            assertThat(value).isCompletedWithValue(1);
            assertThat(inFlight(context, "mono")).isZero();

            jobs.mono(Mono.never()).subscribe().dispose();
            assertThat(inFlight(context, "mono")).isZero();
            assertThat(jobs.mono(Mono.error(new IllegalStateException()))
                            .onErrorReturn(0)
                            .block())
                    .isZero();
            assertThat(inFlight(context, "mono")).isZero();
        });
    }

    @Test
    void aCallRunsToTheLastValueOfItsFlux() {
        run((context, jobs) -> {
            Flux<?> values = (Flux<?>) jobs.run("a", () -> Flux.range(0, 3));
            assertThat(inFlight(context, "run")).isEqualTo(1);
            values.doOnNext(value -> assertThat(inFlight(context, "run")).isEqualTo(1))
                    .blockLast();
            assertThat(inFlight(context, "run")).isZero();
        });
    }

    @Test
    void aMonoThatIsDroppedIsReleased() {
        run((context, jobs) -> {
            jobs.run("a", Mono::never);
            long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            while (inFlight(context, "run") > 0) {
                assertThat(System.nanoTime()).as("in time").isLessThan(end);
                System.gc();
            }
        });
    }

    static class BothPolicyAndNumber {

        @RateLimited(policy = "search", inFlight = "2")
        public void call() {}
    }

    static class NoNumber {

        @RateLimited(inFlight = "many")
        public void call() {}
    }

    static class Zero {

        @RateLimited(inFlight = "0")
        public void call() {}
    }

    static class CapacityWithoutRate {

        @RateLimited(inFlight = "2", capacity = "3")
        public void call() {}
    }

    static class PlainFuture {

        @RateLimited(inFlight = "2")
        public Future<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class Stream {

        @RateLimited("tiered")
        public SseEmitter call() {
            throw new AssertionError("not called");
        }
    }

    static class Deferred {

        @RateLimited("overridden")
        public DeferredResult<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class Task {

        @RateLimited(inFlight = "2")
        public WebAsyncTask<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class Body {

        @RateLimited(inFlight = "2")
        public ResponseEntity<StreamingResponseBody> call() {
            throw new AssertionError("not called");
        }
    }

    static class Late {

        @RateLimited(inFlight = "2")
        public Callable<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class Parallel {

        @RateLimited(inFlight = "2")
        public ParallelFlux<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class Connectable {

        @RateLimited(inFlight = "2")
        public ConnectableFlux<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class OfTexts {

        @RateLimited(policy = "addresses", key = "#id")
        public DeferredResult<String> call(String id) {
            throw new AssertionError("not called");
        }
    }

    static class OfAddresses {

        @RateLimited("addresses")
        public DeferredResult<String> call() {
            throw new AssertionError("not called");
        }
    }

    static class Fitting {

        @RateLimited(inFlight = "2")
        public Publisher<String> publisher() {
            return Flux.just("value");
        }

        @RateLimited(inFlight = "2")
        public CompletionStage<String> stage() {
            return CompletableFuture.completedFuture("value");
        }

        @RateLimited(inFlight = "2")
        public ResponseEntity<String> entity() {
            return ResponseEntity.ok("value");
        }
    }

    @Test
    void resultsKeepTheirTypes() {
        runner.withBean(Fitting.class).run(context -> {
            Fitting fitting = context.getBean(Fitting.class);
            assertThat(Flux.from(fitting.publisher()).blockLast()).isEqualTo("value");
            assertThat(fitting.stage()).isCompletedWithValue("value");
            assertThat(fitting.entity().getBody()).isEqualTo("value");
        });
    }

    @ParameterizedTest
    @ValueSource(classes = {Stream.class, Deferred.class, Task.class, Body.class, Late.class})
    void aResultWhoseWorkComesLaterStopsTheStart(Class<?> bean) {
        assertStops(bean, "doesn't report its completion", "a policy with 'in-flight' and 'paths'");
    }

    @Test
    void aResultThatCanNotReportItsEndInItsOwnTypeStopsTheStart() {
        assertStops(
                Parallel.class,
                "returns a reactor.core.publisher.ParallelFlux",
                "Change the return type to org.reactivestreams.Publisher");
        assertStops(Connectable.class, "ConnectableFlux<", "Change the return type to reactor.core.publisher.Flux");
    }

    @Test
    void anOverrideOfAddressesLimitsNoCallsWhoseKeyIsAText() {
        runner.withBean(OfTexts.class).withPropertyValues(ADDRESSES).run(context -> assertThat(context)
                .hasNotFailed());
        assertStops(OfAddresses.class, "doesn't report its completion", "a policy with 'in-flight' and 'paths'");
    }

    private void assertStops(Class<?> bean, String description, String action) {
        runner.withBean(bean)
                .withPropertyValues(ADDRESSES)
                .withPropertyValues(
                        "ratelimit.policies.tiered.rate=2/1h",
                        "ratelimit.policies.tiered.applies-to=annotated",
                        "ratelimit.policies.tiered.tiers.pro.in-flight=2",
                        "ratelimit.policies.overridden.rate=2/1h",
                        "ratelimit.policies.overridden.key=user",
                        "ratelimit.policies.overridden.applies-to=annotated",
                        "ratelimit.policies.overridden.overrides[0].keys=boss",
                        "ratelimit.policies.overridden.overrides[0].in-flight=2")
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOfSatisfying(RateLimitConfigurationException.class, failure -> {
                            assertThat(failure).hasMessageContaining(description);
                            assertThat(failure.action()).contains(action);
                        }));
    }

    @Test
    void mistakesStopTheStart() {
        assertStops(
                BothPolicyAndNumber.class,
                "has both a policy and an inFlight",
                "Set 'ratelimit.policies.search.in-flight: 2'");
        assertStops(NoNumber.class, "inFlight must be a whole number, but was 'many'", "'inFlight = \"2\"'");
        assertStops(Zero.class, "in-flight must be between 1 and 1,000,000, but was 0", "'inFlight = \"2\"'");
        assertStops(CapacityWithoutRate.class, "has a name or a capacity, but no rate", "Add a rate");
        assertStops(PlainFuture.class, "doesn't report its completion", "Return a CompletableFuture");
    }
}
