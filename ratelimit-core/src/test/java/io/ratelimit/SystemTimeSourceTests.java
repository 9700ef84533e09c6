package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests on the real clock, with short waits and no upper bound on their length. */
@Timeout(60)
class SystemTimeSourceTests {

    @AutoClose
    private final SystemTimeSource time = new SystemTimeSource();

    private static ScheduledThreadPoolExecutor timer(SystemTimeSource time) {
        try {
            Field timer = SystemTimeSource.class.getDeclaredField("timer");
            timer.setAccessible(true);
            return (ScheduledThreadPoolExecutor) timer.get(time);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    @Test
    void callsAreMadeWhenTheirMomentHasComeAndNotBefore() {
        CompletableFuture<Long> called = new CompletableFuture<>();
        long due = time.nanoTime() + 5_000_000;
        time.callAt(due, () -> called.complete(time.nanoTime()));
        assertThat(called.join()).isGreaterThanOrEqualTo(due);
    }

    @Test
    void aMomentThatIsPastIsNow() throws InterruptedException {
        CountDownLatch called = new CountDownLatch(2);
        time.callAt(time.nanoTime() - 1, called::countDown);
        TimeSource anyClock = time::nanoTime;
        anyClock.callAt(anyClock.nanoTime() - 1, called::countDown);
        called.await();
        time.parkUntil(time.nanoTime() - 1);
    }

    @Test
    void aThreadIsHeldUntilItsMoment() throws InterruptedException {
        long due = time.nanoTime() + 3_000_000;
        time.parkUntil(due);
        assertThat(time.nanoTime()).isGreaterThanOrEqualTo(due);
    }

    @Test
    void aCancelledCallLeavesTheQueue() {
        List<Future<?>> calls = new ArrayList<>();
        for (int i = 0; i < 1_000; i++) {
            calls.add(time.callAt(time.nanoTime() + Duration.ofDays(1).toNanos(), () -> {}));
        }
        assertThat(timer(time).getQueue()).hasSize(1_000);
        calls.forEach(call -> call.cancel(false));
        assertThat(timer(time).getQueue()).isEmpty();
    }

    @Test
    void theTimerHasOneThreadAndEndsWhenIdle() {
        timer(time).setKeepAliveTime(1, TimeUnit.MILLISECONDS);
        Future<?> keepsItBusy = time.callAt(time.nanoTime() + Duration.ofDays(1).toNanos(), () -> {});
        CountDownLatch called = new CountDownLatch(100);
        for (int i = 0; i < 100; i++) {
            time.callAt(time.nanoTime() + 1_000_000, called::countDown);
        }
        assertThat(timer(time).getPoolSize()).isEqualTo(1);
        keepsItBusy.cancel(false);
        Threads.await(() -> called.getCount() == 0 && timer(time).getPoolSize() == 0);
        assertThat(timer(time).allowsCoreThreadTimeOut()).isTrue();
        assertThat(new SystemTimeSource())
                .satisfies(unused -> assertThat(timer(unused).getKeepAliveTime(TimeUnit.SECONDS))
                        .isEqualTo(5));
    }

    @Test
    void upkeepIsMadeWhileTheApplicationBlocksTheCommonPool() throws InterruptedException {
        CountDownLatch unblocked = new CountDownLatch(1);
        int threads = 2 * ForkJoinPool.getCommonPoolParallelism();
        for (int i = 0; i < threads; i++) {
            ForkJoinPool.commonPool().submit(() -> {
                unblocked.await();
                return true;
            });
        }
        CountDownLatch maintained = new CountDownLatch(1);
        time.maintainAt(time.nanoTime() + 1_000_000, maintained::countDown);
        boolean inTime = maintained.await(20, TimeUnit.SECONDS);
        unblocked.countDown();
        assertThat(inTime).isTrue();
    }

    @Test
    void aCallIsMadeThoughItsThreadCannotBeStartedAtOnce() throws InterruptedException {
        SystemTimeSource scarce = ScarceThreads.time();
        CountDownLatch called = new CountDownLatch(2);
        scarce.callAt(scarce.nanoTime() + 1, called::countDown);
        scarce.maintainAt(scarce.nanoTime() + 1, called::countDown);
        assertThat(called.await(20, TimeUnit.SECONDS)).isTrue();
        scarce.close();
    }

    @Test
    void aCallIsMadeThoughTheTimerHasNoThreadAtOnce() throws InterruptedException {
        timer(time).setThreadFactory(new ScarceThreads(2));
        CountDownLatch called = new CountDownLatch(1);
        time.callAt(time.nanoTime() + 1, called::countDown);
        assertThat(called.await(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void closingMakesTheScheduledCallsThoughNoThreadCanBeStarted() {
        SystemTimeSource scarce = new SystemTimeSource(new ScarceThreads(9), new ScarceThreads(9));
        Future<?> call = scarce.callAt(scarce.nanoTime() + Duration.ofDays(1).toNanos(), () -> {});
        Future<?> upkeep =
                scarce.maintainAt(scarce.nanoTime() + Duration.ofDays(1).toNanos(), () -> {});
        scarce.close();
        assertThat(call).isDone();
        assertThat(upkeep).isDone();
    }

    @Test
    void aCallThatFailsHarmsNoOther() throws InterruptedException {
        CountDownLatch called = new CountDownLatch(1);
        Future<?> failing = time.callAt(time.nanoTime() + 1_000_000, () -> {
            throw new IllegalStateException("its own affair");
        });
        time.callAt(time.nanoTime() + 2_000_000, called::countDown);
        called.await();
        Threads.await(failing::isDone);
    }

    @Test
    void closingMakesTheScheduledCallsAndWaitingCallsGiveBack() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/1h").withCapacity(5), time);
        assertThat(bucket.tryAcquire(5)).isTrue();
        CompletableFuture<Decision> call = bucket.acquireAsync(2, Duration.ofDays(1));
        assertThat(bucket.snapshot().resetAfter()).isGreaterThan(Duration.ofHours(6));
        time.close();
        assertThat(call.handle((decision, failure) -> failure).join()).isInstanceOf(CancellationException.class);
        Threads.await(() -> bucket.snapshot().resetAfter().compareTo(Duration.ofHours(5)) <= 0);
        CompletableFuture<Decision> late = bucket.acquireAsync(2, Duration.ofDays(1));
        assertThat(late.handle((decision, failure) -> failure).join()).isInstanceOf(CancellationException.class);
        assertThat(bucket.snapshot().available()).isZero();
        time.close();
    }

    @Test
    void theSharedTimeSourceCannotBeClosed() throws InterruptedException {
        ((SystemTimeSource) TimeSource.system()).close();
        CountDownLatch called = new CountDownLatch(1);
        Future<?> later = TimeSource.system()
                .callAt(TimeSource.system().nanoTime() + Duration.ofDays(1).toNanos(), called::countDown);
        assertThat(later).isNotDone();
        later.cancel(false);
        TimeSource.system().callAt(TimeSource.system().nanoTime() + 1, called::countDown);
        called.await();
    }

    @Test
    void tenThousandAsyncCallsAreServedByTwoThreadsNoneBeforeItIsDue() {
        int calls = 10_000;
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("20000/s").withCapacity(100), time);
        AtomicInteger early = new AtomicInteger();
        List<CompletableFuture<Decision>> served = new ArrayList<>();
        for (int i = 0; i < calls; i++) {
            long asked = time.nanoTime();
            served.add(bucket.acquireAsync(1, Duration.ofMinutes(1)).whenComplete((decision, failure) -> {
                boolean isEarly = time.nanoTime() - asked < decision.waitNanos();
                early.addAndGet(isEarly || !decision.allowed() ? 1 : 0);
            }));
        }
        CompletableFuture.allOf(served.toArray(CompletableFuture[]::new)).join();
        assertThat(early).hasValue(0);
        assertThat(timer(time).getQueue()).isEmpty();
        assertThat(timer(time).getLargestPoolSize()).isEqualTo(1);
    }
}
