package io.ratelimit;

import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

/**
 * Where throttling takes the time from: a clock that never goes back and tells no date, and wakes who waits for it. A
 * clock that doesn't run as the machine's does, such as one for tests, has to say how it does that: the defaults of
 * {@link #parkUntil} and {@link #callAt} sleep by the machine's. {@link ManualTimeSource} says it.
 */
@FunctionalInterface
public interface TimeSource {

    /**
     * The nanoseconds since some fixed moment. Only differences mean something, and comparisons go by subtraction;
     * but buckets that refill at intervals have their ticks at whole periods since that moment.
     */
    long nanoTime();

    /**
     * Holds the calling thread until the moment has come; not at all if it is past.
     *
     * @throws InterruptedException if the thread is or gets interrupted before
     */
    default void parkUntil(long nanos) throws InterruptedException {
        for (long left = nanos - nanoTime(); left > 0; left = nanos - nanoTime()) {
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            LockSupport.parkNanos(this, left);
        }
    }

    /**
     * Makes a call when the moment has come, or at once if it is past; on a thread that others wait for too, so it should
     * not hold it.
     *
     * @return what cancels it
     */
    default Future<?> callAt(long nanos, Runnable call) {
        return SystemTimeSource.SHARED.callAfter(nanos - nanoTime(), call);
    }

    /**
     * The machine's monotonic clock, counted from its first use, which is about the start of the process. Its one timer
     * thread is shared by all who use it, and ends when nothing is left to be called.
     */
    static TimeSource system() {
        return SystemTimeSource.SHARED;
    }
}
