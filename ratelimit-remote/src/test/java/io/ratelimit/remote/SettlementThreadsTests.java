package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.ScarceThreads;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SettlementThreadsTests {

    private final SettlementThreads threads = new SettlementThreads();
    private final CountDownLatch backend = new CountDownLatch(1);
    private final Set<Thread> busy = ConcurrentHashMap.newKeySet();
    private final AtomicInteger made = new AtomicInteger();

    @AfterEach
    void end() {
        backend.countDown();
        Thread.interrupted();
    }

    private void settle() {
        busy.add(Thread.currentThread());
        try {
            backend.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        made.incrementAndGet();
    }

    private void fill(int settlements) {
        fill(threads, settlements);
    }

    private void fill(SettlementThreads threads, int settlements) {
        for (int i = 0; i < settlements; i++) {
            threads.execute(this::settle);
        }
    }

    @Test
    void sixteenSettlementsAreMadeAndTenThousandWait() {
        fill(16 + 10_000);
        Awaitility.await().until(() -> busy.size() == 16);
        assertThatExceptionOfType(RejectedExecutionException.class).isThrownBy(() -> fill(1));
        assertThat(busy).hasSize(16).allMatch(Thread::isDaemon);
        backend.countDown();
        Awaitility.await().until(() -> made.get() == 16 + 10_000);
    }

    @Test
    void withoutAThreadASettlementIsRejected() {
        ThreadPoolExecutor pool = SettlementThreads.pool(2, 10, new ScarceThreads(1));
        assertThatExceptionOfType(RejectedExecutionException.class)
                .isThrownBy(() -> pool.execute(made::incrementAndGet));
        pool.execute(made::incrementAndGet);
        Awaitility.await().untilAsserted(() -> assertThat(made).hasValue(1));
        pool.shutdown();
    }

    @Test
    void theEndOfAllSettlementsIsAwaitedAndLaterOnesAreMade() {
        SettlementThreads threads = new SettlementThreads(Duration.ofMinutes(2));
        fill(threads, 1_000);
        Thread opening = new Thread(() -> {
            Awaitility.await().until(() -> busy.size() == 16);
            backend.countDown();
        });
        opening.start();
        threads.await();
        assertThat(made).hasValue(1_000);
        fill(threads, 1);
        threads.await();
        assertThat(made).hasValue(1_001);
    }

    @Test
    void aBackendThatHangsIsAwaitedForTwoSeconds() {
        fill(20);
        long began = System.nanoTime();
        threads.await();
        assertThat(System.nanoTime() - began).isBetween(1_900_000_000L, 10_000_000_000L);
        assertThat(made).hasValue(0);
        backend.countDown();
        Awaitility.await().untilAsserted(() -> assertThat(made).hasValue(20));
    }

    @Test
    void anInterruptEndsTheWait() {
        fill(1);
        Thread.currentThread().interrupt();
        threads.await();
        assertThat(made).hasValue(0);
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }
}
