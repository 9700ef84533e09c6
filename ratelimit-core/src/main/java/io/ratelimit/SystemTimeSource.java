package io.ratelimit;

import java.util.Set;
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

    /** Creates an open time source; it starts no thread yet. */
    public SystemTimeSource() {
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
        return schedule(nanos - nanoTime(), new Timer(upkeep, UPKEEP));
    }

    Future<?> callAfter(long nanos, Runnable run) {
        return schedule(nanos, new Timer(run, POOL));
    }

    private Future<?> schedule(long nanos, Timer call) {
        pending.add(call);
        try {
            call.alarm = timer.schedule(call::start, nanos, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException closed) {
            call.start();
        }
        return call;
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

        void start() {
            executor.execute(this);
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
