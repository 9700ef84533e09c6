package io.ratelimit.annotation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.annotation.RateLimitAnnotationAutoConfiguration;
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

/** Calls of annotated methods that wait in line. */
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

        String late(String id, RateLimitExceededException refused) {
            return refused.getMessage();
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
    void aCallWaitsAsItsPolicyHasIt() {
        run(work -> work.work.patient("0"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.patient("1"));
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
            assertThat(work.work.made()).containsExactly("0", "1");
        });
    }

    @Test
    void whereTooManyWaitTheNextIsRefusedAtOnce() {
        run(work -> work.work.patient("0"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.patient("1"));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> work.work.patient("2"))
                    .withMessage("too many calls wait for 'patient' policy already, retry after 2000 ms")
                    .satisfies(refused -> {
                        assertThat(refused.decision().outcome()).isEqualTo(Outcome.QUEUE_FULL);
                        assertThat(refused.retryAfter()).isEqualTo(Duration.ofSeconds(2));
                    });
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
        });
    }

    @Test
    void theAnnotationsWaitReplacesThePolicys() {
        run(work -> work.work.patient("0"), work -> {
            assertThat(work.work.hasty("1"))
                    .isEqualTo("the call is throttled by 'patient' policy, retry after 1000 ms");
            assertThat(work.time.waiting()).isZero();
        });
    }

    @Test
    void aPolicyWithoutAWaitGetsTheAnnotationsForEachKey() {
        run(work -> work.work.keyed("a"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.keyed("a"));
            work.work.keyed("b");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .as("the queue is the policy's")
                    .isThrownBy(() -> work.work.keyed("b"))
                    .withMessageStartingWith("too many calls wait for 'strict' policy already");
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
            assertThat(work.work.made()).containsExactly("a", "b", "a");
        });
    }

    @Test
    void aLimitOfItsOwnMayLetSomeOfItsCallsWait() {
        run(work -> work.work.own("0"), work -> {
            CompletableFuture<Void> waiting = work.start(() -> work.work.own("1"));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> work.work.own("2"))
                    .withMessage("the call would have to wait too long for 'own' policy, retry after 2000 ms")
                    .satisfies(
                            refused -> assertThat(refused.decision().outcome()).isEqualTo(Outcome.TOO_LONG));
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> work.work.ownAtOnce("3"))
                    .withMessage("the call is throttled by 'own' policy, retry after 2000 ms");
            work.time.advance(Duration.ofSeconds(1));
            waiting.join();
        });
    }

    @Test
    void anInterruptedCallIsNotMadeAndItsTokensAreBack() {
        run(work -> work.work.patient("0"), work -> {
            AtomicReference<Thread> caller = new AtomicReference<>();
            AtomicReference<Boolean> marked = new AtomicReference<>();
            CompletableFuture<Void> waiting = work.start(() -> {
                caller.set(Thread.currentThread());
                assertThatExceptionOfType(RateLimitInterruptedException.class)
                        .isThrownBy(() -> work.work.patient("1"))
                        .withMessage("the call was interrupted while it waited in line")
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
    void oneThatIsInterruptedBeforeIsMadeWhereItNeedsNoWait() {
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
                "2     | has the maxWait '2' that can't be: '2' has no unit: say '2ms', '2s'.",
                "PT-1S | has the maxWait 'PT-1S' that can't be: max-wait must be between 0 and 365 days, but was -1s.",
                "1000d | has the maxWait '1000d' that can't be: max-wait must be between 0 and 365 days, but was 1000d.",
                "soon  | has the maxWait 'soon' that can't be: 'soon' is not a period: say us, ms, s, m, h or d (as in '100ms'), second, minute, hour or day, or ISO-8601 such as 'PT1M'.",
            })
    void aWaitThatIsNoneStopsTheStart(String wait, String message) {
        runner.withPropertyValues("wrong=" + wait).withBean(Wrong.class).run(context -> assertThat(
                        context.getStartupFailure())
                .isInstanceOf(InvalidRateLimitedException.class)
                .hasMessage("@RateLimited on " + Wrong.class.getName() + ".work() " + message)
                .satisfies(failure -> assertThat(((InvalidRateLimitedException) failure).action())
                        .isEqualTo("Say 'maxWait = \"2s\"', for example, or '0s' for not at all.")));
    }

    @Test
    void aPlaceholderThatNothingFillsStopsTheStart() {
        runner.withBean(Wrong.class)
                .run(context -> assertThat(((InvalidRateLimitedException) context.getStartupFailure()).action())
                        .isEqualTo("Define 'wrong', or say '${wrong:2s}'."));
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

        /** On another thread, until it waits. */
        CompletableFuture<Void> start(Runnable call) {
            CompletableFuture<Void> started = CompletableFuture.runAsync(call, run -> new Thread(run).start());
            Awaitility.await().until(() -> time.waiting() == 1);
            return started;
        }
    }
}
