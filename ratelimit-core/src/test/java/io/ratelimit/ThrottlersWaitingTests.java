package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ThrottlersWaitingTests {

    private static final int LIMIT = 3;
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of(
                    "global", BucketSpec.of("1/s").withCapacity(5))
            .withMaxWait(Duration.ofSeconds(10))
            .withQueueLimit(LIMIT);
    private static final ThrottlePolicy USER = ThrottlePolicy.of(
                    "user", BucketSpec.of("1/s").withCapacity(2), "user")
            .withMaxWait(Duration.ofSeconds(4))
            .withQueueLimit(LIMIT);
    private static final ThrottlePolicy IMPATIENT =
            ThrottlePolicy.of("impatient", BucketSpec.of("1/s").withCapacity(1));

    private final ManualTimeSource time = new ManualTimeSource();
    private final BucketStore local = BucketStore.local(time);
    private ThrottleListener listener = ThrottleListener.NONE;
    private Throttlers throttlers = throttlers(local);

    private Throttlers throttlers(BucketStore store) {
        return new Throttlers(List.of(GLOBAL, USER, IMPATIENT), store, time, decision -> listener.decided(decision));
    }

    private static Charge global(long cost) {
        return Charge.of(GLOBAL, "", cost);
    }

    private static Charge user(long cost) {
        return Charge.of(USER, "alice", cost);
    }

    private static Charge impatient() {
        return Charge.of(IMPATIENT, "", 1);
    }

    private void drain(Charge charge) {
        assertThat(local.take(List.of(charge)).allowed()).isTrue();
    }

    private Duration untilFull(Charge charge) {
        return local.snapshot(charge).resetAfter();
    }

    private Decision acquire(Charge... charges) {
        try {
            return throttlers.acquire(List.of(charges));
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    private CompletableFuture<Decision> inThread(Charge... charges) {
        return CompletableFuture.supplyAsync(() -> acquire(charges), work -> new Thread(work).start());
    }

    private void awaitWaiting(int count) {
        Threads.await(() -> time.waiting() == count);
    }

    @Test
    void aCallWhoseTokensAreAvailableDoesNotWait() {
        Decision decision = acquire(global(5), user(2));
        assertThat(decision.allowed()).isTrue();
        assertThat(decision.waitFor()).isZero();
        assertThat(throttlers.waiting("global")).isZero();
    }

    @Test
    void aCallWaitsInTheQueueUntilItsTokensAreAvailable() {
        drain(global(5));
        CompletableFuture<Decision> waiter = inThread(global(2));
        awaitWaiting(1);
        assertThat(throttlers.waiting("global")).isEqualTo(1);
        time.advance(Duration.ofSeconds(2));
        assertThat(waiter.join().waitFor()).isEqualTo(Duration.ofSeconds(2));
        assertThat(throttlers.waiting("global")).isZero();
    }

    @Test
    void overSeveralPoliciesTheLongestWaitCountsAndEachHasItsQueue() {
        drain(global(5));
        drain(user(1));
        CompletableFuture<Decision> waiter = inThread(user(2), global(3));
        awaitWaiting(1);
        assertThat(throttlers.waiting("global")).isEqualTo(1);
        assertThat(throttlers.waiting("user")).isEqualTo(1);
        time.advance(Duration.ofSeconds(2));
        assertThat(waiter).isNotDone();
        time.advance(Duration.ofSeconds(1));
        assertThat(waiter.join().waitFor()).isEqualTo(Duration.ofSeconds(3));
        assertThat(throttlers.waiting("global") + throttlers.waiting("user")).isZero();
    }

    /** S1.6, S1.7: each denial has its own outcome, and takes neither tokens nor a place in the queue. */
    @Test
    void theKindsOfDenialDiffer() {
        drain(global(5));
        drain(user(2));
        drain(impatient());
        assertThat(acquire(user(3)).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(acquire(global(6), user(1)).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(acquire(impatient()).outcome()).isEqualTo(Outcome.DENIED);
        Decision denied = acquire(global(1), impatient());
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(GLOBAL, IMPATIENT);
        Decision tooLong = acquire(user(1).withMaxWait(Duration.ofMillis(999)), global(2));
        assertThat(tooLong.outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(tooLong.retryAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(tooLong.decisiveDenial().policy()).isEqualTo(USER);
        assertThat(untilFull(global(1))).isEqualTo(Duration.ofSeconds(5));
        assertThat(untilFull(user(1))).isEqualTo(Duration.ofSeconds(2));
        assertThat(throttlers.waiting("global") + throttlers.waiting("user")).isZero();
    }

    @Test
    void whenTheQueueIsFullTheNextCallIsDeniedAtOnceAndTakesNothing() {
        drain(global(5));
        drain(user(2));
        List<CompletableFuture<Decision>> waiters =
                List.of(inThread(global(1)), inThread(global(1)), inThread(global(1)));
        awaitWaiting(LIMIT);
        Decision full = acquire(user(1), global(1));
        assertThat(full.outcome()).isEqualTo(Outcome.QUEUE_FULL);
        assertThat(full.retryAfter()).isEqualTo(Duration.ofSeconds(4));
        assertThat(full.decisiveDenial().policy()).isEqualTo(GLOBAL);
        assertThat(throttlers.waiting("user")).isZero();
        assertThat(untilFull(user(1))).isEqualTo(Duration.ofSeconds(2));
        assertThat(untilFull(global(1))).isEqualTo(Duration.ofSeconds(8));
        time.advance(Duration.ofSeconds(3));
        assertThat(waiters).allMatch(waiter -> waiter.join().allowed());
    }

    @Test
    void aCallHasOnePlaceInAQueueForAnyNumberOfWaitingCharges() {
        drain(global(5));
        CompletableFuture<Decision> waiter = inThread(global(1), global(1), global(1), global(1));
        awaitWaiting(1);
        assertThat(throttlers.waiting("global")).isEqualTo(1);
        time.advance(Duration.ofSeconds(4));
        assertThat(waiter.join().allowed()).isTrue();
    }

    @Test
    void anInterruptedCallLeavesTheQueueAndGivesBack() throws InterruptedException {
        drain(global(5));
        CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        Thread waiter = new Thread(() -> {
            try {
                throttlers.acquire(List.of(user(1), global(2)));
            } catch (Throwable interrupted) {
                thrown.complete(interrupted);
            }
        });
        waiter.start();
        awaitWaiting(1);
        waiter.interrupt();
        assertThat(thrown.join()).isInstanceOf(InterruptedException.class);
        waiter.join();
        assertThat(throttlers.waiting("global")).isZero();
        assertThat(untilFull(global(1))).isEqualTo(Duration.ofSeconds(5));
        assertThat(untilFull(user(1))).isZero();
    }

    @Test
    void aCallInterruptedBeforeItsWaitGivesBack() {
        drain(global(5));
        Thread.currentThread().interrupt();
        assertThatExceptionOfType(InterruptedException.class).isThrownBy(() -> throttlers.acquire(List.of(global(1))));
        assertThat(throttlers.waiting("global")).isZero();
        assertThat(untilFull(global(1))).isEqualTo(Duration.ofSeconds(5));
    }

    @Test
    void afterAFailureOfTheStoreOrAListenerNoPlaceInTheQueueStaysTaken() {
        drain(global(5));
        throttlers = throttlers(new StoreWithPause(local, () -> {
            throw new IllegalStateException("the store is away");
        }));
        assertThatThrownBy(() -> acquire(global(1))).hasMessage("the store is away");
        assertThat(throttlers.waiting("global")).isZero();
        throttlers = throttlers(local);
        listener = decision -> {
            throw new OutOfMemoryError("the listener fails"); // the kind of failure that is passed on
        };
        assertThatThrownBy(() -> acquire(global(1))).hasMessage("the listener fails");
        assertThat(throttlers.waiting("global")).isZero();
    }

    /** Other calls may empty a bucket between the two takes; the call then joins that queue too. */
    @Test
    void aCallThatFindsTheQueueFullAfterConcurrentTakesIsDenied() {
        Charge bob = Charge.of(USER, "bob", 2);
        drain(user(2));
        drain(global(5));
        AtomicInteger reserved = new AtomicInteger();
        throttlers = throttlers(new StoreWithPause(local, () -> {
            if (reserved.incrementAndGet() > LIMIT) {
                drain(bob);
            }
        }));
        List<CompletableFuture<Decision>> waiters = List.of(inThread(user(1)), inThread(user(1)), inThread(user(1)));
        awaitWaiting(LIMIT);
        Decision decision = acquire(global(1), bob);
        assertThat(decision.outcome()).isEqualTo(Outcome.QUEUE_FULL);
        assertThat(decision.decisiveDenial().charge()).isEqualTo(bob);
        assertThat(decision.retryAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(decision.waitFor()).isZero();
        assertThat(untilFull(bob)).isEqualTo(Duration.ofSeconds(2));
        assertThat(untilFull(global(1))).isEqualTo(Duration.ofSeconds(5));
        assertThat(throttlers.waiting("global")).isZero();
        assertThat(throttlers.waiting("user")).isEqualTo(LIMIT);
        time.advance(Duration.ofSeconds(LIMIT));
        assertThat(waiters).allMatch(waiter -> waiter.join().allowed());
    }

    @Test
    void aPolicyInShadowModeHoldsNoCall() {
        ThrottlePolicy shadow = ThrottlePolicy.of("shadow", BucketSpec.of("1/s"))
                .withMode(Mode.SHADOW)
                .withMaxWait(Duration.ofSeconds(9))
                .withQueueLimit(1);
        for (int i = 0; i < 20; i++) {
            Decision decision = acquire(global(1).withMaxWait(Duration.ZERO), Charge.of(shadow, "", 1));
            assertThat(decision.outcome()).isEqualTo(i < 5 ? Outcome.ALLOWED : Outcome.DENIED);
        }
    }

    @Test
    void aThrottlerWaitsAsLongAsItsCallerAllows() throws InterruptedException {
        drain(impatient());
        Throttler throttler = throttlers.global("impatient");
        assertThat(throttler.tryAcquire(1, Duration.ofMillis(999))).isFalse();
        assertThat(throttler.acquire(1, Duration.ofMillis(999)).outcome()).isEqualTo(Outcome.TOO_LONG);
        CompletableFuture<Decision> waiter = inThread(impatient().withMaxWait(Duration.ofSeconds(1)));
        awaitWaiting(1);
        time.advance(Duration.ofSeconds(1));
        assertThat(waiter.join().allowed()).isTrue();
        assertThatIllegalArgumentException()
                .isThrownBy(() -> throttler.acquire(1, Duration.ofNanos(-1)))
                .withMessage("max-wait must be zero or more, but was PT-0.000000001S");
        time.advance(Duration.ofSeconds(1));
        assertThat(throttler.acquire(1, Duration.ofSeconds(Long.MAX_VALUE)).outcome())
                .as("above 365 days a wait counts as 365 days")
                .isEqualTo(Outcome.ALLOWED);
    }

    @Test
    void aQueueLimitBelowOneIsRejected() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> GLOBAL.withQueueLimit(0))
                .withMessage("queue-limit must be at least 1, but was 0");
        assertThatIllegalArgumentException().isThrownBy(() -> GLOBAL.withMaxWait(Duration.ofNanos(-1)));
    }

    /** Time stands still, so waiting calls stay: exactly as many as fit the queue, each with its own moment. */
    @Test
    void underLoadExactlyAsManyCallsWaitAsTheQueueHasPlaces() {
        int threads = 40;
        ThrottlePolicy policy = GLOBAL.withMaxWait(Duration.ofHours(1)).withQueueLimit(17);
        LongAdder full = new LongAdder();
        AtomicInteger waited = new AtomicInteger();
        List<CompletableFuture<Void>> calls = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            calls.add(inThread(Charge.of(policy, "", 1)).thenAccept(decision -> {
                full.add(decision.outcome() == Outcome.QUEUE_FULL ? 1 : 0);
                waited.addAndGet(decision.waitNanos() > 0 ? 1 : 0);
            }));
        }
        awaitWaiting(17);
        Threads.await(() -> full.sum() == threads - 5 - 17);
        assertThat(throttlers.waiting("global")).isEqualTo(17);
        time.advance(Duration.ofSeconds(17));
        calls.forEach(CompletableFuture::join);
        assertThat(waited).hasValue(17);
        assertThat(throttlers.waiting("global")).isZero();
    }

    /** A store that runs an action before it takes ahead. */
    private static final class StoreWithPause extends PlainStore {

        private final Runnable pause;

        StoreWithPause(BucketStore store, Runnable pause) {
            super(store);
            this.pause = pause;
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            pause.run();
            return super.reserve(charges);
        }
    }
}
