package io.ratelimit.remote;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Pools of a few threads that don't keep the process alive. */
final class DaemonThreads {

    private static final long IDLE_SECONDS = 10;

    private DaemonThreads() {}

    /**
     * Returns a pool whose threads start when they are needed, and end after ten idle seconds.
     *
     * @param name the beginning of the threads' names
     * @param maxWaiting the most tasks that wait while all threads are busy; others are rejected
     */
    static ThreadPoolExecutor pool(String name, int threads, int maxWaiting) {
        AtomicInteger number = new AtomicInteger();
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                threads, threads, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<>(maxWaiting), task -> {
                    Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
                    thread.setDaemon(true);
                    return thread;
                });
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }
}
