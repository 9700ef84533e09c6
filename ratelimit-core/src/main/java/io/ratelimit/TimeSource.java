package io.ratelimit;

import java.time.Instant;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;

/**
 * A clock that never goes back, with timers. Use {@link #system()}, or {@link ManualTimeSource} in tests. The default
 * methods of this interface wait by the machine's clock, so a clock that runs differently must override them.
 */
@FunctionalInterface
public interface TimeSource {

    /**
     * Returns the nanoseconds since a fixed moment. Only differences are meaningful, and comparisons must subtract.
     * Buckets with interval refill get their tokens at whole periods since that moment.
     *
     * <p>Must not throw: a call that reads the clock would fail, and {@linkplain #maintainAt upkeep} might end.
     */
    long nanoTime();

    /**
     * Returns the wall-clock time at this moment, in nanoseconds since 1970-01-01T00:00Z. Buckets in memory with
     * calendar refill get their tokens by it. It may step back; the calendar of a bucket doesn't.
     */
    default long wallNanos() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000 + now.getNano();
    }

    /**
     * Parks the calling thread until a moment; returns at once if it is past.
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
     * Schedules a call for a moment; if it is past, for now. Other calls may wait for the same thread, so the call must
     * be quick.
     *
     * @return a future that cancels the call
     */
    default Future<?> callAt(long nanos, Runnable call) {
        return SystemTimeSource.SHARED.callAfter(nanos - nanoTime(), call);
    }

    /**
     * Schedules a call as {@link #callAt} does, for the library's own upkeep: the next log line, the next sample of the
     * dashboard. No request or thread waits for it.
     *
     * @return a future that cancels the call
     */
    default Future<?> maintainAt(long nanos, Runnable upkeep) {
        return callAt(nanos, upkeep);
    }

    /**
     * Returns the machine's monotonic clock, counted from its first use, which is about the start of the process. All
     * its users share one timer thread, which ends while no call is scheduled.
     */
    static TimeSource system() {
        return SystemTimeSource.SHARED;
    }
}
