package io.ratelimit.remote;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A few threads for settlements of calls whose results come later. The thread that brings a result can be one that reads
 * the replies of the backend, so it must not wait for one. While all threads are busy, at most 10,000 settlements wait;
 * others are rejected. Thread-safe.
 */
final class SettlementThreads implements Executor {

    static final int THREADS = 16;
    static final int MAX_WAITING = 10_000;

    private static final long IDLE_SECONDS = 10;
    private static final Duration MAX_AWAIT = Duration.ofSeconds(2);

    private final Duration maxAwait;
    private ThreadPoolExecutor threads = start();

    SettlementThreads() {
        this(MAX_AWAIT);
    }

    SettlementThreads(Duration maxAwait) {
        this.maxAwait = maxAwait;
    }

    private static ThreadPoolExecutor start() {
        return pool("ratelimit-settlement", THREADS, MAX_WAITING);
    }

    /**
     * Returns a pool of threads that don't keep the process alive. They start when they are needed, and end after ten idle seconds.
     *
     * @param name the beginning of the threads' names
     * @param maxWaiting the most tasks that wait while all threads are busy; others are rejected, and so are those that
     *     need a thread when the system allows none
     */
    static ThreadPoolExecutor pool(String name, int threads, int maxWaiting) {
        AtomicInteger number = new AtomicInteger();
        return pool(threads, maxWaiting, task -> {
            Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        });
    }

    static ThreadPoolExecutor pool(int threads, int maxWaiting, ThreadFactory factory) {
        ThreadPoolExecutor pool =
                new ThreadPoolExecutor(
                        threads,
                        threads,
                        IDLE_SECONDS,
                        TimeUnit.SECONDS,
                        new LinkedBlockingQueue<>(maxWaiting),
                        factory) {

                    @Override
                    public void execute(Runnable task) {
                        try {
                            super.execute(task);
                        } catch (OutOfMemoryError noThread) {
                            if (getPoolSize() == 0 || !getQueue().offer(task)) {
                                throw new RejectedExecutionException("no thread can be started", noThread);
                            }
                        }
                    }
                };
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    @Override
    public synchronized void execute(Runnable settlement) {
        threads.execute(settlement);
    }

    /** Waits until the settlements that were passed before are made, but for at most two seconds. */
    void await() {
        ThreadPoolExecutor before = replace();
        try {
            before.awaitTermination(maxAwait.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns the threads so far, which end after the settlements that were passed to them. */
    private synchronized ThreadPoolExecutor replace() {
        ThreadPoolExecutor before = threads;
        threads = start();
        before.shutdown();
        return before;
    }
}
