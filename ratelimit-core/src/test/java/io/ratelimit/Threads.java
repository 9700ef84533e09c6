package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;

/** Runs work in several threads that start together, and throws what one of them threw. */
public final class Threads {

    private static final ExecutorService POOL = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "tests");
        thread.setDaemon(true);
        return thread;
    });

    private Threads() {}

    public static void run(int count, IntConsumer work) {
        CyclicBarrier start = new CyclicBarrier(count);
        List<Future<?>> running = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int thread = i;
            running.add(POOL.submit(() -> {
                start.await();
                work.accept(thread);
                return null;
            }));
        }
        for (Future<?> one : running) {
            join(one);
        }
    }

    /** Returns the time that this thread has had a processor, which doesn't depend on other work of the machine. */
    public static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** Waits for a condition that other threads are about to establish. */
    static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("in time").isLessThan(end);
            Thread.yield();
        }
    }

    private static void join(Future<?> one) {
        try {
            one.get();
        } catch (ExecutionException thrown) {
            throw new AssertionError(thrown.getCause());
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }
}
