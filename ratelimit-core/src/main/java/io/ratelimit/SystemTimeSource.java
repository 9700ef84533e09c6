package io.ratelimit;

import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * {@link System#nanoTime()}, counted from its first use, with its own timer: one daemon thread that runs while a call
 * is scheduled, and hands the calls to the JVM's common pool, and upkeep to threads of its own. Close it together with its user.
 */
public final class SystemTimeSource implements TimeSource, AutoCloseable {

    private static final long START = System.nanoTime();
    private static final long IDLE_SECONDS = 5;
    private static final long RETRY_SECONDS = 1;

    /** The common pool, or a thread for each call if the JVM is configured to have no thread in the pool. */
    private static final Executor POOL = ForkJoinPool.getCommonPoolParallelism() > 0
            ? ForkJoinPool.commonPool()
            : call -> thread(call).start();

    /** Threads for upkeep alone: an application may block all of the pool's, and its registers must be renewed nevertheless. */
    private static final Executor UPKEEP = new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, IDLE_SECONDS, TimeUnit.SECONDS, new SynchronousQueue<>(), SystemTimeSource::thread);

    static final SystemTimeSource SHARED = new SystemTimeSource();

    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, SystemTimeSource::thread);
    private final Set<Timer> pending = ConcurrentHashMap.newKeySet();
    private final Executor pool;
    private final Executor upkeep;

    /** Creates an open time source; it starts no thread yet. */
    public SystemTimeSource() {
        this(POOL, UPKEEP);
    }

    SystemTimeSource(Executor pool, Executor upkeep) {
        this.pool = pool;
        this.upkeep = upkeep;
        timer.setKeepAliveTime(IDLE_SECONDS, TimeUnit.SECONDS);
        timer.allowCoreThreadTimeOut(true);
        timer.setRemoveOnCancelPolicy(true);
    }

    private static Thread thread(Runnable run) {
        Thread thread = new Thread(run, "ratelimit-timer");
        thread.setDaemon(true);
        thread.setContextClassLoader(null);
        return thread;
    }

    @Override
    public long nanoTime() {
        return System.nanoTime() - START;
    }

    @Override
    public Future<?> callAt(long nanos, Runnable call) {
        return callAfter(nanos - nanoTime(), call);
    }

    @Override
    public Future<?> maintainAt(long nanos, Runnable upkeep) {
        return schedule(nanos - nanoTime(), new Timer(upkeep, this.upkeep));
    }

    Future<?> callAfter(long nanos, Runnable run) {
        return schedule(nanos, new Timer(run, pool));
    }

    private Future<?> schedule(long nanos, Timer call) {
        pending.add(call);
        try {
            call.alarm = timer.schedule(call::start, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException closed) {
            call.start();
        } catch (OutOfMemoryError failed) {
            if (timer.getQueue().isEmpty()) {
                pending.remove(call);
                throw failed;
            }
            startTimer(); // the call is in the queue, but no thread could be started
        }
        return call;
    }

    /**
     * Starts the timer's thread. While the system allows none, tries again each second on the JVM's own timer. If that needs
     * a thread too, the next call starts the thread.
     */
    private void startTimer() {
        try {
            timer.prestartCoreThread();
        } catch (OutOfMemoryError noThread) {
            try {
                CompletableFuture.delayedExecutor(RETRY_SECONDS, TimeUnit.SECONDS, Runnable::run)
                        .execute(this::startTimer);
            } catch (OutOfMemoryError neither) {
                return;
            }
        }
    }

    /**
     * Stops the timer and makes all scheduled calls at once, so that no caller waits for ever. Does nothing for the
     * {@linkplain TimeSource#system shared} time source, since a container closes every bean.
     */
    @Override
    public void close() {
        if (this != SHARED) {
            timer.shutdownNow();
            pending.forEach(Timer::start);
        }
    }

    private final class Timer extends FutureTask<@Nullable Void> {

        private final Executor executor;
        private volatile @Nullable Future<?> alarm;

        Timer(Runnable call, Executor executor) {
            super(call, null);
            this.executor = executor;
        }

        /** Hands the call over. While no thread can be started for it, tries again each second; once closed, makes it here. */
        void start() {
            try {
                executor.execute(this);
            } catch (Error | RejectedExecutionException noThread) {
                startLater();
            }
        }

        private void startLater() {
            try {
                alarm = timer.schedule(this::start, RETRY_SECONDS, TimeUnit.SECONDS);
            } catch (RejectedExecutionException closed) {
                run();
            }
        }

        @Override
        protected void done() {
            pending.remove(this);
            Future<?> scheduled = alarm;
            if (scheduled != null) {
                scheduled.cancel(false);
            }
        }
    }
}
