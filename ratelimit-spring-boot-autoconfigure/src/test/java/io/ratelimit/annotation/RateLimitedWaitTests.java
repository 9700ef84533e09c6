package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.context.PropertyPlaceholderAutoConfiguration;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Calls of annotated methods that wait for their tokens. */
@Timeout(60)
class RateLimitedWaitTests {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    PropertyPlaceholderAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RateLimitAnnotationAutoConfiguration.class))
            .withBean(ManualTimeSource.class)
            .withPropertyValues(
                    "ratelimit.policies.patient.rate=1/1s",
                    "ratelimit.policies.patient.max-wait=2s",
                    "ratelimit.policies.patient.queue-limit=1",
                    "ratelimit.policies.patient.applies-to=annotated",
                    "ratelimit.policies.strict.rate=1/1s",
                    "ratelimit.policies.strict.queue-limit=1",
                    "ratelimit.policies.strict.key=expression:'all'",
                    "ratelimit.policies.strict.applies-to=annotated",
                    "the.wait=3s");

    static class Work {

        final List<String> made = new CopyOnWriteArrayList<>();

        List<String> made() {
            return made;
        }

        @RateLimited("patient")
        void patient(String id) {
            made.add(id);
        }

        @RateLimited(policy = "patient", maxWait = "0s", fallback = "late")
        String hasty(String id) {
            made.add(id);
            return id;
        }

        String late(String id, RateLimitExceededException denied) {
            return denied.getMessage();
        }

        @RateLimited(policy = "strict", key = "#id", maxWait = " ${the.wait} ")
        void keyed(String id) {
            made.add(id);
        }

        @RateLimited(name = "own", rate = "1/1s", maxWait = "1s")
        void own(String id) {
            made.add(id);
        }

        @RateLimited(name = "own", rate = "1/1s")
        void ownAtOnce(String id) {
            made.add(id);
        }
    }

    @Test
    void aCallWaitsUnderThePolicysLimits() {
        run(work -> work.work.patient("0"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.patient("1"));
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
            assertThat(work.work.made()).containsExactly("0", "1");
        });
    }

    @Test
    void aCallIsDeniedAtOnceIfTheQueueIsFull() {
        run(work -> work.work.patient("0"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.patient("1"));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> work.work.patient("2"))
                    .withMessage("Too many calls already wait for 'patient' policy, please retry after 2000 ms.")
                    .satisfies(refused -> {
                        assertThat(refused.decision().outcome()).isEqualTo(Outcome.QUEUE_FULL);
                        assertThat(refused.retryAfter()).isEqualTo(Duration.ofSeconds(2));
                    });
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
        });
    }

    @Test
    void theMaxWaitOfTheAnnotationReplacesThePolicys() {
        run(work -> work.work.patient("0"), work -> {
            assertThat(work.work.hasty("1"))
                    .isEqualTo("The call is throttled by 'patient' policy, please retry after 1000 ms.");
            assertThat(work.time.waiting()).isZero();
        });
    }

    @Test
    void theMaxWaitOfTheAnnotationAppliesToAPolicyWithoutOne() {
        run(work -> work.work.keyed("a"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.keyed("a"));
            work.work.keyed("b");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .as("the keys share the policy's queue")
                    .isThrownBy(() -> work.work.keyed("b"))
                    .withMessageStartingWith("Too many calls already wait for 'strict' policy");
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
            assertThat(work.work.made()).containsExactly("a", "b", "a");
        });
    }

    @Test
    void oneOfSeveralMethodsThatShareAnInlineLimitMayWait() {
        run(work -> work.work.own("0"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.own("1"));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> work.work.own("2"))
                    .withMessage("The call would have to wait too long for 'own' policy, please retry after 2000 ms.")
                    .satisfies(
                            refused -> assertThat(refused.decision().outcome()).isEqualTo(Outcome.TOO_LONG));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> work.work.ownAtOnce("3"))
                    .withMessage("The call is throttled by 'own' policy, please retry after 2000 ms.");
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
        });
    }

    @Test
    void anInterruptedCallIsNotMadeAndItsTokensAreReturned() {
        run(work -> work.work.patient("0"), work -> {
            AtomicReference<Thread> caller = new AtomicReference<>();
            AtomicReference<Boolean> marked = new AtomicReference<>();
            CompletableFuture<Void> waiting = work.start(() -> {
                caller.set(Thread.currentThread());
                assertThatExceptionOfType(RateLimitInterruptedException.class)
                        .isThrownBy(() -> work.work.patient("1"))
                        .withMessage("the call was interrupted while it waited for tokens")
                        .withCauseInstanceOf(InterruptedException.class);
                marked.set(Thread.interrupted());
            });
            caller.get().interrupt();
            waiting.join();

            assertThat(marked).hasValue(true);
            assertThat(work.work.made()).containsExactly("0");
            assertThat(work.throttlers.waiting("patient")).isZero();
            work.time.advance(Duration.ofSeconds(1));
            work.work.patient("2");
        });
    }

    @Test
    void aCallOnAnInterruptedThreadIsMadeIfItNeedsNoWait() {
        run(work -> {}, work -> {
            Thread.currentThread().interrupt();
            work.work.patient("0");
            assertThat(Thread.currentThread().isInterrupted()).isTrue();
            assertThatExceptionOfType(RateLimitInterruptedException.class).isThrownBy(() -> work.work.patient("1"));
            assertThat(Thread.interrupted()).isTrue();
            assertThat(work.work.made()).containsExactly("0");
        });
    }

    static class Wrong {

        @RateLimited(policy = "patient", maxWait = "${wrong}")
        void work() {}
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "2     | has an invalid maxWait '2': '2' has no unit: write '2ms' or '2s'.",
                "PT-1S | has an invalid maxWait 'PT-1S': max-wait must be between 0 and 365 days, but was -1s.",
                "1000d | has an invalid maxWait '1000d': max-wait must be between 0 and 365 days, but was 1000d.",
                "soon  | has an invalid maxWait 'soon': 'soon' is not a duration: write a number and a unit, such as '2s' or '500ms'.",
            })
    void anInvalidMaxWaitStopsTheStart(String wait, String message) {
        runner.withPropertyValues("wrong=" + wait).withBean(Wrong.class).run(context -> assertThat(
                        context.getStartupFailure())
                .isInstanceOf(RateLimitConfigurationException.class)
                .hasMessage("@RateLimited on " + Wrong.class.getName() + ".work() " + message)
                .satisfies(failure -> assertThat(((RateLimitConfigurationException) failure).action())
                        .isEqualTo("Write a duration such as 'maxWait = \"2s\"', or '0s' for no wait.")));
    }

    @Test
    void aPlaceholderWithoutAPropertyStopsTheStart() {
        runner.withBean(Wrong.class)
                .run(context -> assertThat(((RateLimitConfigurationException) context.getStartupFailure()).action())
                        .isEqualTo("Define 'wrong', or write a default: '${wrong:2s}'."));
    }

    private void run(Consumer<Waiters> before, Consumer<Waiters> test) {
        runner.withBean(Work.class).run(context -> {
            Waiters waiters = new Waiters(context);
            before.accept(waiters);
            test.accept(waiters);
        });
    }

    private static final class Waiters {

        final Work work;
        final ManualTimeSource time;
        final Throttlers throttlers;

        Waiters(AssertableApplicationContext context) {
            this.work = context.getBean(Work.class);
            this.time = context.getBean(ManualTimeSource.class);
            this.throttlers = context.getBean(Throttlers.class);
        }

        /** Makes the call on another thread, and returns when it waits. */
        CompletableFuture<Void> start(Runnable call) {
            CompletableFuture<Void> started = CompletableFuture.runAsync(call, run -> new Thread(run).start());
            Awaitility.await().until(() -> time.waiting() == 1);
            return started;
        }
    }
}
