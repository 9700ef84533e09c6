package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.Decision.Outcome;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A clock or a release that throws may fail a call, but leaves no other slot of the call behind. */
@Timeout(60)
class BrokenClockTests {

    private static final ThrottlePolicy EXPORTS = ThrottlePolicy.of("exports", BucketSpec.inFlight(2), "user");
    private static final ThrottlePolicy PATIENT = ThrottlePolicy.of(
                    "patient", BucketSpec.of("1/1m").withInFlight(1), "user")
            .withMaxWait(Duration.ofMinutes(1));

    private final ManualTimeSource time = new ManualTimeSource();
    private final BreakableTimeSource clock = new BreakableTimeSource(time);
    private final Throttlers throttlers =
            new Throttlers(List.of(EXPORTS, PATIENT), BucketStore.local(time), clock, ThrottleListener.NONE);
    private final Throttler exports = throttlers.get("exports").forKey("alice");
    private final Throttler patient = throttlers.get("patient").forKey("alice");

    /** The clock of the test, until it is broken. */
    private static final class BreakableTimeSource implements TimeSource {

        private final TimeSource time;
        private volatile boolean broken;
        private volatile boolean callsFail;
        private final AtomicInteger reads = new AtomicInteger(Integer.MAX_VALUE); // after so many, one fails

        BreakableTimeSource(TimeSource time) {
            this.time = time;
        }

        @Override
        public long nanoTime() {
            if (broken || reads.getAndDecrement() == 0) {
                throw new IllegalStateException("broken");
            }
            return time.nanoTime();
        }

        @Override
        public long wallNanos() {
            return time.wallNanos();
        }

        @Override
        public void parkUntil(long nanos) {
            throw new IllegalStateException("broken");
        }

        @Override
        public Future<?> callAt(long nanos, Runnable call) {
            if (callsFail) {
                throw new IllegalStateException("broken");
            }
            return time.callAt(nanos, call);
        }
    }

    @Test
    void atTheStartOfACall() {
        clock.broken = true;
        assertThatIllegalStateException().isThrownBy(() -> exports.decide(1));
        assertThat(throttlers.inFlight("exports")).isZero();
    }

    @Test
    void atTheEndOfACallWithSeveralSlots() {
        Decision decision = throttlers.decide(List.of(Charge.of(EXPORTS, "alice", 1), Charge.of(PATIENT, "alice", 1)));
        assertThat(throttlers.inFlight("patient")).isOne();
        clock.broken = true;
        decision.release();
        assertThat(throttlers.inFlight("exports")).isZero();
        assertThat(throttlers.inFlight("patient")).isZero();
    }

    @Test
    void afterAWaitForASlot() {
        Decision running = patient.decide(1);
        CompletableFuture<Decision> waiting = CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return patient.acquire(1, Duration.ofMinutes(1));
                    } catch (InterruptedException interrupted) {
                        throw new AssertionError(interrupted);
                    }
                },
                work -> new Thread(work).start());
        Threads.await(() -> throttlers.waiting("patient") == 1 && time.waiting() == 1);
        clock.broken = true;
        running.release();
        assertThatExceptionOfType(CompletionException.class)
                .isThrownBy(waiting::join)
                .withCauseInstanceOf(IllegalStateException.class);
        assertThat(throttlers.inFlight("patient")).isZero();
    }

    @Test
    void duringAWaitForTokensWhichComeBack() {
        patient.decide(1).release();
        assertThatIllegalStateException().isThrownBy(() -> patient.acquire(1, Duration.ofMinutes(1)));
        assertThat(throttlers.inFlight("patient")).isZero();
        time.advance(Duration.ofMinutes(1));
        assertThat(patient.snapshot().available()).isEqualTo(1);
    }

    @Test
    void duringAWaitOfATokenBucket() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/1m"), clock);
        bucket.decide(1);
        assertThatIllegalStateException().isThrownBy(() -> bucket.acquire(1, Duration.ofMinutes(1)));
        clock.callsFail = true;
        assertThatIllegalStateException().isThrownBy(() -> bucket.acquireAsync(1, Duration.ofMinutes(1)));
        time.advance(Duration.ofMinutes(1));
        assertThat(bucket.snapshot().available()).isEqualTo(1);
    }

    /** Each read of the clock fails once, while a key leaves its overflow bucket, changes its limit twice and is reset. */
    @ParameterizedTest
    @CsvSource({"1, false", "10, false", "1, true", "10, true"})
    @Timeout(value = 20, threadMode = ThreadMode.SEPARATE_THREAD) // a thread that spins notices no interrupt
    void whileABucketIsReplacedByAnother(int maxKeys, boolean byCalendar) {
        ThrottlePolicy policy =
                ThrottlePolicy.of("small", spec(5, byCalendar), "user").withMaxKeys(maxKeys);
        Charge alice = Charge.of(policy, "alice", 1);
        Charge bob = Charge.of(policy, "bob", 1);
        Charge faster = new Charge(policy, spec(50, byCalendar), alice.key(), 1);
        int reads = -1;
        boolean failed;
        do {
            BucketStore store = BucketStore.local(clock);
            clock.reads.set(++reads);
            attempt(() -> store.take(List.of(bob)));
            attempt(() -> store.take(List.of(alice)));
            attempt(() -> store.reset(bob));
            attempt(() -> store.take(List.of(alice)));
            attempt(() -> store.take(List.of(faster)));
            attempt(() -> store.take(List.of(alice)));
            attempt(() -> store.reset(alice));
            attempt(() -> store.take(List.of(alice)));
            failed = clock.reads.get() < 0;
            clock.reads.set(Integer.MAX_VALUE);

            long left = store.snapshot(alice).available();
            for (int i = 0; i < left; i++) {
                assertThat(store.take(List.of(alice)).allowed()).isTrue();
            }
            assertThat(store.take(List.of(alice)).allowed()).isFalse();
        } while (failed);
        assertThat(reads).isGreaterThan(10);
    }

    private static BucketSpec spec(long tokens, boolean byCalendar) {
        return byCalendar ? BucketSpec.of(tokens + "/day").withCalendar(ZoneOffset.UTC) : BucketSpec.of(tokens + "/1m");
    }

    private static void attempt(Runnable step) {
        try {
            step.run();
        } catch (IllegalStateException broken) {
            assertThat(broken).hasMessage("broken");
        }
    }

    /** The one slot that processes share, which is always free. */
    private static class SharedSlot implements SharedSlots, SharedSlots.Slot {

        private int released;

        @Override
        public Slot take(Charge charge) {
            return this;
        }

        @Override
        public Slot enqueue(Charge charge, IntSupplier limit) {
            return this;
        }

        @Override
        public int held() {
            return 0;
        }

        @Override
        public int held(String key) {
            return 0;
        }

        @Override
        public Outcome outcome() {
            return Outcome.ALLOWED;
        }

        @Override
        public boolean fallback() {
            return false;
        }

        @Override
        public int free() {
            return 1;
        }

        @Override
        public void await(long nanos) {}

        @Override
        public void giveUp() {}

        @Override
        public void release() {
            released++;
        }
    }

    @Test
    void atTheStartOfACallWhoseSlotIsSharedAndReleasedOnce() {
        SharedSlot slot = new SharedSlot();
        Throttler alice = new Throttlers(List.of(EXPORTS), storeWith(policy -> slot), clock, ThrottleListener.NONE)
                .get("exports")
                .forKey("alice");
        clock.broken = true;
        assertThatIllegalStateException().isThrownBy(() -> alice.decide(1));
        assertThat(slot.released).isEqualTo(1);
    }

    @Test
    void atTheEndOfACallOneOfWhoseSlotsTheStoreCannotRelease() {
        ThrottlePolicy other = ThrottlePolicy.of("other", BucketSpec.inFlight(2), "user");
        SharedSlot slot = new SharedSlot();
        SharedSlot broken = new SharedSlot() {
            @Override
            public void release() {
                throw new IllegalStateException("broken");
            }
        };
        BucketStore store = storeWith(policy -> policy.equals(other) ? slot : broken);
        Throttlers both = new Throttlers(List.of(EXPORTS, other), store, clock, ThrottleListener.NONE);
        Decision decision = both.decide(List.of(Charge.of(EXPORTS, "alice", 1), Charge.of(other, "alice", 1)));
        assertThatIllegalStateException().isThrownBy(decision::release);
        assertThat(slot.released).isEqualTo(1);
    }

    /** The store takes its time for it, and other calls go on meanwhile. */
    @Test
    void aSlotWhoseReleaseOverflowedTheStackIsReleasedByTheNextCall() {
        AtomicInteger attempts = new AtomicInteger();
        AtomicReference<Throttler> alice = new AtomicReference<>();
        SharedSlot slot = new SharedSlot() {
            @Override
            public void release() {
                if (attempts.incrementAndGet() == 1) {
                    throw new StackOverflowError();
                }
                CompletableFuture.runAsync(() -> alice.get().decide(1))
                        .orTimeout(20, TimeUnit.SECONDS)
                        .join();
                super.release();
            }
        };
        alice.set(new Throttlers(List.of(EXPORTS), storeWith(policy -> slot), clock, ThrottleListener.NONE)
                .get("exports")
                .forKey("alice"));
        Decision decision = alice.get().decide(1);
        assertThatExceptionOfType(StackOverflowError.class).isThrownBy(decision::release);
        alice.get().decide(1);
        decision.release();
        assertThat(slot.released).isEqualTo(1);
    }

    private static BucketStore storeWith(Function<Object, SharedSlots> slots) {
        return (BucketStore) Proxy.newProxyInstance(
                BrokenClockTests.class.getClassLoader(),
                new Class<?>[] {BucketStore.class},
                (proxy, method, arguments) -> method.getName().equals("slots") ? slots.apply(arguments[0]) : null);
    }
}
