package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class TokenBucketWaitingTests {

    private static final BucketSpec SPEC = BucketSpec.of("1/s").withCapacity(5);

    private final ManualTimeSource time = new ManualTimeSource();
    private final TokenBucket bucket = TokenBucket.of(SPEC, time);

    private static Duration seconds(long seconds) {
        return Duration.ofSeconds(seconds);
    }

    private Duration untilFull() {
        return bucket.snapshot().resetAfter();
    }

    private void drain() {
        assertThat(bucket.tryAcquire(5)).isTrue();
    }

    @Test
    void aReservationOfAvailableTokensIsDueAtOnce() throws InterruptedException {
        Reservation reservation = bucket.reserve(5);
        assertThat(reservation.decision().allowed()).isTrue();
        assertThat(reservation.delay()).isZero();
        reservation.await();
        assertThat(bucket.snapshot().available()).isZero();
    }

    @Test
    void aReservationIsDueWhenItsTokensAreThereAndStaysSo() {
        drain();
        Reservation reservation = bucket.reserve(2);
        assertThat(reservation.decision().waitFor()).isEqualTo(seconds(2));
        assertThat(reservation.delay()).isEqualTo(seconds(2));
        time.advance(Duration.ofMillis(500));
        bucket.reserve(5);
        assertThat(reservation.delay()).isEqualTo(Duration.ofMillis(1_500));
        time.advance(seconds(9));
        assertThat(reservation.delay()).isZero();
    }

    /** S1.6, S1.7: too long a wait and a cost above the capacity have different outcomes, and take no tokens. */
    @Test
    void aDeniedReservationCannotBeAwaitedNorCancelled() {
        drain();
        Reservation tooLong = bucket.reserve(3, Duration.ofMillis(2_999));
        Reservation neverFits = bucket.reserve(6);
        assertThat(tooLong.decision().outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(tooLong.decision().retryAfter()).isEqualTo(seconds(3));
        assertThat(neverFits.decision().outcome()).isEqualTo(Outcome.NEVER_FITS);
        for (Reservation refused : List.of(tooLong, neverFits)) {
            assertThat(refused.delay()).isZero();
            assertThat(refused.cancel()).isFalse();
            assertThatIllegalStateException()
                    .isThrownBy(refused::await)
                    .withMessageContaining("no tokens were reserved");
        }
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void withoutAWaitItIsDeniedAtOnce() throws InterruptedException {
        drain();
        assertThat(bucket.reserve(1, Duration.ZERO).decision().outcome()).isEqualTo(Outcome.DENIED);
        assertThat(bucket.tryAcquire(1, Duration.ZERO)).isFalse();
        assertThat(bucket.acquire(1, Duration.ZERO).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(bucket.acquireAsync(1, Duration.ZERO).join().outcome()).isEqualTo(Outcome.DENIED);
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void acquireReturnsTheDecision() throws InterruptedException {
        assertThat(bucket.acquire(5, seconds(1)).remaining()).isZero();
        assertThat(bucket.acquire(3, Duration.ofMillis(2_999)).outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(bucket.acquire(6, seconds(9)).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void acquireWithoutALongestWaitWaitsAsLongAsItTakes() throws Exception {
        drain();
        CompletableFuture<Decision> waiting = CompletableFuture.supplyAsync(() -> {
            try {
                return bucket.acquire(5);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        });
        while (time.waiting() == 0) {
            Thread.onSpinWait();
        }
        time.advance(Duration.ofMillis(4_999));
        assertThat(waiting).isNotDone();
        time.advance(Duration.ofMillis(1));
        assertThat(waiting.get(10, TimeUnit.SECONDS).waitFor()).isEqualTo(seconds(5));
        assertThat(bucket.acquire(6).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThatIllegalArgumentException().isThrownBy(() -> bucket.acquire(0));
        Thread.currentThread().interrupt();
        assertThatExceptionOfType(InterruptedException.class).isThrownBy(() -> bucket.acquire(1));
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void everyMethodRejectsANegativeWaitAndACostBelowOne() {
        String wait = "max-wait must be zero or more, but was PT-0.000000001S";
        Duration negative = Duration.ofNanos(-1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.tryAcquire(1, negative))
                .withMessage(wait);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.acquire(1, negative))
                .withMessage(wait);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.reserve(1, negative))
                .withMessage(wait);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.acquireAsync(1, negative))
                .withMessage(wait);
        String tokens = "tokens must be at least 1, but was 0";
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.tryAcquire(0, seconds(1)))
                .withMessage(tokens);
        assertThatIllegalArgumentException().isThrownBy(() -> bucket.reserve(0)).withMessage(tokens);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.acquireAsync(0, seconds(1)))
                .withMessage(tokens);
        assertThat(untilFull()).isZero();
    }

    @Test
    void aWaitAboveAYearCountsAsAYear() {
        Duration absurd = Duration.ofSeconds(Long.MAX_VALUE, 999_999_999);
        TokenBucket slow = TokenBucket.of(BucketSpec.of("1/365d"), time);
        assertThat(slow.tryAcquire(1)).isTrue();
        assertThat(slow.reserve(1, absurd).delay()).isEqualTo(ThrottlePolicy.LONGEST_WAIT);
        assertThat(slow.reserve(1, absurd).decision().outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(slow.reserve(1).decision().outcome()).isEqualTo(Outcome.TOO_LONG);
    }

    /** Ten years from full, a year in debt, and a take of ten years: in the finest ticks near the largest long. */
    @ParameterizedTest
    @ValueSource(longs = {1, 23})
    void theLargestDebtOfTheSlowestBucketIsCounted(long tokens) {
        Duration year = Duration.ofDays(365);
        TokenBucket slow = TokenBucket.of(BucketSpec.of(new Rate(tokens, year)).withCapacity(10 * tokens), time);
        assertThat(slow.tryAcquire(10 * tokens)).isTrue();
        Reservation last = slow.reserve(tokens);
        assertThat(last.delay()).isEqualTo(year);
        assertThat(slow.reserve(10 * tokens).decision().outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(slow.reserve(10 * tokens).decision().retryAfter()).isEqualTo(year.multipliedBy(11));
        assertThat(slow.snapshot().resetAfter()).isEqualTo(year.multipliedBy(11));
        slow.reconfigure(BucketSpec.of(new Rate(24 - tokens, year)));
        assertThat(slow.snapshot().resetAfter()).isEqualTo(year.multipliedBy(2));
        last.cancel();
        time.advance(year);
        assertThat(slow.snapshot().resetAfter()).isEqualTo(year);
    }

    @Test
    void cancellingTwiceGivesBackOnce() {
        drain();
        Reservation reservation = bucket.reserve(2);
        assertThat(reservation.cancel()).isTrue();
        assertThat(reservation.cancel()).isFalse();
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void tokensAlreadyDueAreGivenBack() {
        Reservation atOnce = bucket.reserve(2);
        assertThat(atOnce.cancel()).isTrue();
        assertThat(untilFull()).isZero();
        drain();
        Reservation due = bucket.reserve(2);
        time.advance(seconds(3));
        assertThat(due.cancel()).isTrue();
        assertThat(bucket.snapshot().available()).isEqualTo(3);
    }

    @Test
    void aCancelledReservationOfAnotherSpecBreaksNoPromise() {
        drain();
        Reservation first = bucket.reserve(5);
        bucket.reconfigure(SPEC.withCapacity(6));
        Reservation second = bucket.reserve(1);
        first.cancel();
        assertThat(second.delay()).isEqualTo(seconds(6));
        assertThat(untilFull()).isEqualTo(seconds(12));
    }

    @Test
    void aWaitingThreadIsHeldOnceUntilItsTokensAreDue() {
        drain();
        CompletableFuture<Boolean> waiter = inThread(() -> bucket.tryAcquire(2, seconds(2)));
        awaitWaiting(1);
        time.advance(Duration.ofMillis(1_999));
        awaitWaiting(1);
        assertThat(waiter).isNotDone();
        time.advance(Duration.ofMillis(1));
        assertThat(waiter.join()).isTrue();
    }

    @Test
    void aThreadThatIsInterruptedBeforeTakesNothing() {
        Thread.currentThread().interrupt();
        assertThatExceptionOfType(InterruptedException.class).isThrownBy(() -> bucket.tryAcquire(5, seconds(9)));
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
        assertThat(untilFull()).isZero();
    }

    @Test
    void aThreadThatIsInterruptedWhileItWaitsGivesBack() throws InterruptedException {
        drain();
        CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        Thread waiter = new Thread(() -> {
            try {
                bucket.tryAcquire(3, seconds(3));
            } catch (InterruptedException interrupted) {
                thrown.complete(interrupted);
            }
        });
        waiter.start();
        awaitWaiting(1);
        assertThat(untilFull()).isEqualTo(seconds(8));
        waiter.interrupt();
        assertThat(thrown.join()).isInstanceOf(InterruptedException.class);
        waiter.join();
        assertThat(untilFull()).isEqualTo(seconds(5));
        assertThat(time.waiting()).isZero();
    }

    @Test
    void anAsyncCallIsServedWhenItsTokensAreDueAndHoldsNoThread() {
        drain();
        CompletableFuture<Decision> call = bucket.acquireAsync(2, seconds(2));
        time.advance(Duration.ofMillis(1_999));
        assertThat(call).isNotDone();
        time.advance(Duration.ofMillis(1));
        assertThat(call)
                .isCompletedWithValueMatching(decision -> decision.waitFor().equals(seconds(2)));
        assertThat(time.waiting()).isZero();
    }

    @Test
    void anAsyncCallThatNeedNotOrMayNotWaitIsAnsweredAtOnce() {
        assertThat(bucket.acquireAsync(5, seconds(9))).isCompletedWithValueMatching(Decision::allowed);
        assertThat(bucket.acquireAsync(5, seconds(4)))
                .isCompletedWithValueMatching(decision -> decision.outcome() == Outcome.TOO_LONG);
        assertThat(bucket.acquireAsync(6, seconds(9)))
                .isCompletedWithValueMatching(decision -> decision.outcome() == Outcome.NEVER_FITS);
        assertThat(time.waiting()).isZero();
    }

    @Test
    void aCancelledAsyncCallGivesBackAndLeavesTheTimer() {
        drain();
        CompletableFuture<Decision> call = bucket.acquireAsync(2, seconds(2));
        assertThat(time.waiting()).isEqualTo(1);
        call.cancel(true);
        assertThat(time.waiting()).isZero();
        assertThat(untilFull()).isEqualTo(seconds(5));
        call.cancel(true);
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void anAsyncCallThatTimesOutGivesBackAndLeavesTheTimer() {
        drain();
        CompletableFuture<Decision> call = bucket.acquireAsync(2, seconds(2)).orTimeout(1, TimeUnit.MILLISECONDS);
        Threads.await(() -> untilFull().equals(seconds(5)));
        assertThat(time.waiting()).isZero();
        assertThat(call).isCompletedExceptionally();
        assertThat(call.handle((decision, failure) -> failure).join()).isInstanceOf(TimeoutException.class);
    }

    @Test
    void aServedAsyncCallKeepsItsTokensAfterAnyLaterCompletion() {
        drain();
        CompletableFuture<Decision> call = bucket.acquireAsync(2, seconds(2));
        time.advance(seconds(2));
        assertThat(call.cancel(true)).isFalse();
        assertThat(call.completeExceptionally(new CancellationException())).isFalse();
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void anAsyncCallThatItsCallerCompletesIsNotServedAgain() {
        drain();
        AtomicInteger completed = new AtomicInteger();
        CompletableFuture<Decision> call = bucket.acquireAsync(2, seconds(2));
        call.whenComplete((decision, failure) -> completed.incrementAndGet());
        call.complete(bucket.decide(6));
        assertThat(time.waiting()).as("calls that the timer keeps").isZero();
        time.advance(seconds(2));
        assertThat(completed).hasValue(1);
        assertThat(call.join().outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    @Test
    void asyncCallsAreServedInTheirOrder() {
        drain();
        List<Integer> served = new ArrayList<>();
        int calls = 10_000;
        long cost = 0;
        for (int i = 0; i < calls; i++) {
            int number = i;
            cost += 1 + i * 7 % 5;
            bucket.acquireAsync(1 + i * 7 % 5, Duration.ofDays(1)).thenRun(() -> served.add(number));
        }
        assertThat(time.waiting()).isEqualTo(calls);
        time.advance(seconds(cost - 1));
        assertThat(served).hasSize(calls - 1).isSorted();
        time.advance(seconds(1));
        assertThat(served).hasSize(calls).isSorted();
    }

    @Test
    void aReconfigurationToTheSameChangesNothing() {
        drain();
        Reservation reservation = bucket.reserve(5);
        bucket.reconfigure(BucketSpec.of("1/s").withCapacity(5));
        assertThat(reservation.cancel()).isTrue();
        assertThat(untilFull()).isEqualTo(seconds(5));
    }

    /** S3.5. */
    @Test
    void aReconfigurationKeepsTheTokensAndTheTimeUntilThen() {
        assertThat(bucket.tryAcquire(4)).isTrue();
        time.advance(seconds(2));
        bucket.reconfigure(BucketSpec.of("10/s").withCapacity(20));
        assertThat(bucket.snapshot())
                .isEqualTo(
                        new BucketSnapshot(20, Rate.of("10/s"), 3, Duration.ofMillis(100), Duration.ofMillis(1_700)));
        bucket.reconfigure(BucketSpec.of("10/s").withCapacity(2));
        assertThat(bucket.snapshot())
                .isEqualTo(new BucketSnapshot(2, Rate.of("10/s"), 2, Duration.ZERO, Duration.ZERO));
    }

    @Test
    void aDrainedBucketWhoseRateRisesServesAgainWithinTheMinute() {
        TokenBucket daily = TokenBucket.of(BucketSpec.of("5/1d"), time);
        assertThat(daily.tryAcquire(5)).isTrue();
        daily.reconfigure(BucketSpec.of("5/1m"));
        CompletableFuture<Decision> call = daily.acquireAsync(5, Duration.ofMinutes(1));
        time.advance(Duration.ofMinutes(1));
        assertThat(call).isCompletedWithValueMatching(Decision::allowed);
    }

    @Test
    void aWaitingCallKeepsItsMomentAndIsNeverOvertaken() {
        drain();
        Reservation waiting = bucket.reserve(4);
        for (String rate : List.of("100/s", "1/1h", "7/s", "1/s")) {
            bucket.reconfigure(BucketSpec.of(rate).withCapacity(5));
            assertThat(waiting.delay()).isEqualTo(seconds(4));
            assertThat(bucket.decide(1).retryNanos()).isGreaterThan(seconds(4).toNanos());
        }
        assertThat(untilFull()).isEqualTo(seconds(9));
    }

    /** Tokens returned before a change are available at the same moment after it. */
    @Test
    void tokensGivenBackInDebtSurviveAChange() {
        drain();
        Reservation first = bucket.reserve(5);
        bucket.reserve(2);
        first.cancel();
        assertThat(untilFull()).isEqualTo(seconds(9));
        bucket.reconfigure(SPEC.withCapacity(6));
        assertThat(untilFull()).isEqualTo(seconds(10));
        bucket.giveBack(1);
        assertThat(untilFull()).isEqualTo(seconds(10));
        time.advance(seconds(7));
        bucket.giveBack(1);
        assertThat(untilFull()).isEqualTo(seconds(2));
    }

    /** If the clock were read too early, later takes of other threads would look like a debt. */
    @Test
    void aCallDelayedAfterReadingTheClockGivesBackAll() {
        HeldUpTimeSource clock = new HeldUpTimeSource(seconds(10));
        TokenBucket held = TokenBucket.of(SPEC, clock);
        assertThat(held.tryAcquire(5)).isTrue();
        clock.holdUpNextReader(seconds(2), () -> {
            assertThat(held.tryAcquire(2)).isTrue();
        });
        held.giveBack(3);
        assertThat(held.snapshot().available()).isEqualTo(3);
    }

    private interface Waiter {
        boolean await() throws InterruptedException;
    }

    private static CompletableFuture<Boolean> inThread(Waiter waiter) {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return waiter.await();
                    } catch (InterruptedException interrupted) {
                        throw new AssertionError(interrupted);
                    }
                },
                work -> new Thread(work).start());
    }

    private void awaitWaiting(int count) {
        Threads.await(() -> time.waiting() == count);
    }
}
