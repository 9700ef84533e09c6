package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ManualTimeSourceTests {

    private final ManualTimeSource time = new ManualTimeSource();

    @Test
    void callsAreMadeInTheOrderOfTheirMomentsAndAtThem() {
        List<String> made = new ArrayList<>();
        time.callAt(30, () -> made.add("third at " + time.nanoTime()));
        time.callAt(10, () -> made.add("first at " + time.nanoTime()));
        time.callAt(10, () -> {
            made.add("second at " + time.nanoTime());
            time.callAt(20, () -> made.add("added at " + time.nanoTime()));
        });
        time.callAt(0, () -> made.add("at once"));
        time.advance(Duration.ofNanos(30));
        assertThat(made).containsExactly("at once", "first at 10", "second at 10", "added at 20", "third at 30");
        assertThat(time.nanoTime()).isEqualTo(30);
    }

    @Test
    void aCancelledCallIsNotMadeAndAFailingCallHarmsNoOther() {
        AtomicInteger made = new AtomicInteger();
        Future<?> call = time.callAt(10, made::incrementAndGet);
        Future<?> failing = time.callAt(10, () -> {
            throw new IllegalStateException();
        });
        time.callAt(11, made::incrementAndGet);
        assertThat(time.waiting()).isEqualTo(3);
        assertThat(call.cancel(true)).isTrue();
        assertThat(time.waiting()).isEqualTo(2);
        time.advance(Duration.ofNanos(11));
        assertThat(made).hasValue(1);
        assertThat(failing).isDone();
        assertThat(call.cancel(true)).isFalse();
    }

    @Test
    void aThreadIsHeldUntilItsMomentAndNotForAPastMoment() throws InterruptedException {
        time.advance(Duration.ofNanos(5));
        time.parkUntil(5);
        AtomicInteger woken = new AtomicInteger();
        Thread waiter = new Thread(() -> {
            try {
                time.parkUntil(7);
                woken.incrementAndGet();
            } catch (InterruptedException interrupted) {
                woken.set(-1);
            }
        });
        waiter.start();
        Threads.await(() -> time.waiting() == 1);
        time.advance(Duration.ofNanos(1));
        assertThat(time.waiting()).isEqualTo(1);
        time.advance(Duration.ofNanos(1));
        waiter.join();
        assertThat(woken).hasValue(1);
        assertThat(time.waiting()).isZero();
    }

    /** Like on the machine's clock: a past moment doesn't park the thread, so there is nothing to interrupt. */
    @Test
    void aPastMomentReportsNoInterruption() throws InterruptedException {
        Thread.currentThread().interrupt();
        time.parkUntil(0);
        TimeSource.system().parkUntil(TimeSource.system().nanoTime());
        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void anInterruptedThreadIsNotParked() {
        Thread.currentThread().interrupt();
        assertThatExceptionOfType(InterruptedException.class).isThrownBy(() -> time.parkUntil(1));
        assertThat(time.waiting()).isZero();
    }

    @Test
    void doesNotGoBack() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> time.advance(Duration.ofNanos(-1)))
                .withMessage("step must be zero or more, but was PT-0.000000001S");
        time.advance(Duration.ofNanos(Long.MAX_VALUE));
        assertThatExceptionOfType(ArithmeticException.class).isThrownBy(() -> time.advance(Duration.ofNanos(1)));
        assertThat(time.nanoTime()).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void manyMayMoveAndOrderAtATime() {
        LongAdder made = new LongAdder();
        Threads.run(8, thread -> {
            for (int i = 0; i < 2_000; i++) {
                long due = time.nanoTime() + i % 7;
                time.callAt(due, () -> made.add(time.nanoTime() >= due ? 1 : 0));
                time.advance(Duration.ofNanos(1));
            }
        });
        time.advance(Duration.ofNanos(10));
        assertThat(made.sum()).isEqualTo(16_000);
        assertThat(time.nanoTime()).isEqualTo(16_010);
        assertThat(time.waiting()).isZero();
    }

    @Test
    void theLibrarysOwnUpkeepIsDoneInTimeAndDoesNotCountAsWaiting() {
        List<String> done = new ArrayList<>();
        time.maintainAt(10, () -> done.add("upkeep"));
        Future<?> call = time.callAt(20, () -> done.add("call"));
        assertThat(time.waiting()).isEqualTo(1);

        time.advance(Duration.ofNanos(15));

        assertThat(done).containsExactly("upkeep");
        call.cancel(false);
        assertThat(time.waiting()).isZero();
    }
}
