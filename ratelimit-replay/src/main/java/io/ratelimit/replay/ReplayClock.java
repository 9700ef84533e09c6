package io.ratelimit.replay;

import io.ratelimit.TimeSource;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import org.jspecify.annotations.Nullable;

/**
 * A clock that stands still until a log moves it. A request that waits for tokens parks on a thread of its own until
 * the log reaches its moment. One thread runs at a time, so a replay has the same result each time.
 */
final class ReplayClock implements TimeSource, AutoCloseable {

    private final PriorityQueue<Timer> timers = new PriorityQueue<>(
            Comparator.comparingLong((Timer timer) -> timer.moment).thenComparingLong(timer -> timer.number));
    private final Semaphore log = new Semaphore(0);
    private final ExecutorService waiting = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "waiting");
        thread.setDaemon(true);
        return thread;
    });
    private volatile long nanos;
    private volatile @Nullable Throwable failure;
    private long scheduled;

    ReplayClock(long nanos) {
        this.nanos = nanos;
    }

    @Override
    public long nanoTime() {
        return nanos;
    }

    /** Returns the same: the moments of a log count from 1970. */
    @Override
    public long wallNanos() {
        return nanos;
    }

    /**
     * Moves the time forward through all timers; a moment in the past doesn't move it.
     *
     * @throws IllegalStateException if a call or a request failed
     */
    void advanceTo(long moment) {
        for (Timer timer = timers.peek(); timer != null && timer.moment <= moment; timer = timers.peek()) {
            timers.remove();
            nanos = Math.max(nanos, timer.moment);
            timer.run();
            checkFailure();
        }
        nanos = Math.max(nanos, moment);
    }

    /**
     * Runs a request that may wait. Returns when it has ended or waits.
     *
     * @throws IllegalStateException if it failed
     */
    void run(Runnable request) {
        waiting.execute(() -> {
            try {
                request.run();
            } catch (Throwable thrown) {
                failure = thrown;
            } finally {
                log.release();
            }
        });
        log.acquireUninterruptibly();
        checkFailure();
    }

    private void checkFailure() {
        Throwable thrown = failure;
        if (thrown != null) {
            failure = null;
            throw new IllegalStateException(thrown);
        }
    }

    @Override
    public void parkUntil(long moment) {
        Semaphore turn = new Semaphore(0);
        callAt(moment, () -> {
            turn.release();
            log.acquireUninterruptibly();
        });
        log.release();
        turn.acquireUninterruptibly();
    }

    @Override
    public Future<?> callAt(long moment, Runnable call) {
        Timer timer = new Timer(moment, scheduled++, call);
        timers.add(timer);
        return timer;
    }

    /**
     * Ends all requests that wait.
     *
     * @throws IllegalStateException if a call or a request failed
     */
    @Override
    public void close() {
        while (!timers.isEmpty()) {
            Timer timer = timers.remove();
            nanos = Math.max(nanos, timer.moment);
            timer.run();
        }
        waiting.shutdown();
        checkFailure();
    }

    /** A call in the future. Its failure is the clock's, since no caller waits for the result. */
    private final class Timer extends FutureTask<@Nullable Void> {

        private final long moment;
        private final long number;

        Timer(long moment, long number, Runnable call) {
            super(call, null);
            this.moment = moment;
            this.number = number;
        }

        @Override
        protected void setException(Throwable thrown) {
            failure = thrown;
            super.setException(thrown);
        }
    }
}
