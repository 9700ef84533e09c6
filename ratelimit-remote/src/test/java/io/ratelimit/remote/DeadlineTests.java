package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.ratelimit.BackendException;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.remote.Deadline.CongestedException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class DeadlineTests {

    private static Deadline.Call call(Duration timeout) {
        return Deadline.Call.within(timeout, DeadlineTests::failure);
    }

    private static BackendException failure(Throwable cause) {
        return new BackendException("failed", cause);
    }

    @AfterEach
    void calmDown() {
        Thread.interrupted();
    }

    @Test
    void aReplyInTimeIsReturned() {
        assertThat(call(Duration.ofMinutes(1)).await(CompletableFuture.completedFuture("PONG")))
                .isEqualTo("PONG");
    }

    @Test
    void aLateReplyIsCancelled() {
        assertNoAnswerInTime();
    }

    /** Awaits replies that never come, until a call ends on time: one whose thread wakes later proves nothing. */
    private static void assertNoAnswerInTime() {
        Duration timeout = Duration.ofMillis(500);
        assertThat(IntStream.range(0, 20)).anyMatch(attempt -> {
            CompletableFuture<String> never = new CompletableFuture<>();
            long began = System.nanoTime();
            BackendException late = catchThrowableOfType(
                    BackendException.class, () -> call(timeout).await(never));
            long took = System.nanoTime() - began;
            assertThat(late).isNotNull();
            assertThat(never).isCancelled();
            boolean onTime = took <= timeout.toNanos() * 6 / 5;
            assertThat(late).matches(failure -> !onTime || failure.getMessage().equals("no answer in time"));
            return onTime;
        });
    }

    @Test
    void aCommandThatWasNeverSentIsNoFailureOfTheBackend() {
        assertThatExceptionOfType(CongestedException.class)
                .isThrownBy(() -> call(Duration.ofMillis(500)).await(new CompletableFuture<>(), () -> 0));
    }

    @Test
    void aCallWithLessThanHalfOfTheTimeoutIsNoFailureOfTheBackend() {
        Deadline deadline = new Deadline(new SystemTimeSource(), Duration.ofSeconds(1));
        deadline.open(new Deadline.Request());
        deadline.ended(deadline.began(0), Duration.ofMillis(980).toNanos(), false, false);

        assertThatExceptionOfType(CongestedException.class)
                .isThrownBy(() -> deadline.call(DeadlineTests::failure).await(new CompletableFuture<>()));
    }

    /** Otherwise cancelled tasks would look like a server that fails. */
    @Test
    void anInterruptedThreadGetsTheReplyAndItsInterruptIsRestored() {
        CompletableFuture<String> soon =
                new CompletableFuture<String>().completeOnTimeout("PONG", 20, TimeUnit.MILLISECONDS);
        Thread.currentThread().interrupt();

        assertThat(call(Duration.ofMinutes(1)).await(soon)).isEqualTo("PONG");
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }

    @Test
    void anInterruptedThreadWaitsNoLongerThanTheDeadline() {
        Thread.currentThread().interrupt();

        assertNoAnswerInTime();
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }

    /** A wait for another call and the call that follows share one deadline, on any thread. A busy machine wakes late. */
    @Test
    void aWaitForAnotherCallTakesAQuarterOfTheTimeThatIsLeft() {
        long timeout = Duration.ofMillis(200).toNanos();
        Deadline deadline = new Deadline(new SystemTimeSource(), Duration.ofNanos(timeout));
        assertThat(IntStream.range(0, 20)).anyMatch(attempt -> {
            deadline.awaitOther(new CompletableFuture<>());
            long left = deadline.leftNanos();
            deadline.closeAwaiting();
            assertThat(left).isLessThanOrEqualTo(timeout * 3 / 4);
            assertThat(deadline.leftNanos()).isEqualTo(timeout);
            return left > timeout / 2;
        });
    }

    @Test
    void aWaitWithinARequestDoesNotEndIt() {
        Deadline deadline = new Deadline(new SystemTimeSource(), Duration.ofMillis(8));
        deadline.open(new Deadline.Request());
        deadline.awaitOther(new CompletableFuture<>());
        deadline.closeAwaiting();
        assertThat(deadline.leftNanos()).isLessThanOrEqualTo(6_000_000);
    }

    @Test
    void anInterruptEndsTheWaitForAnotherCallAndIsRestored() {
        Duration timeout = Duration.ofHours(1);
        Deadline deadline = new Deadline(new SystemTimeSource(), timeout);
        Thread.currentThread().interrupt();

        deadline.awaitOther(new CompletableFuture<>());
        assertThat(deadline.leftNanos()).isGreaterThan(timeout.toNanos() * 7 / 8);
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }

    @Test
    void anInterruptedThreadGetsASharedReplyAndItsInterruptIsRestored() {
        Deadline deadline = new Deadline(new SystemTimeSource(), Duration.ofHours(1));
        CompletableFuture<String> soon =
                new CompletableFuture<String>().completeOnTimeout("PONG", 20, TimeUnit.MILLISECONDS);
        Thread.currentThread().interrupt();

        deadline.awaitShared(soon);
        assertThat(soon).isCompletedWithValue("PONG");
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }
}
