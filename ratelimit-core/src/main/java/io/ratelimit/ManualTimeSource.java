package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A clock that stands still until {@link #advance} moves it, for tests of limits without sleeping. Moving it wakes
 * waiting threads and makes scheduled calls. Starts at zero, and its wall clock at 1970-01-01T00:00Z. Thread-safe.
 */
public final class ManualTimeSource implements TimeSource {

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition moved = lock.newCondition();
    private final PriorityQueue<Timer> calls = new PriorityQueue<>(
            Comparator.comparingLong((Timer call) -> call.nanos).thenComparingLong(call -> call.number));
    private volatile long nanos;
    private volatile long wallStart;
    private long end;
    private long scheduledCount;
    private int parked;

    @Override
    public long nanoTime() {
        return nanos;
    }

    @Override
    public long wallNanos() {
        return wallStart + nanos;
    }

    /** Sets the wall clock, back or forward, and leaves the time as it is. */
    public void setWallClock(Instant now) {
        wallStart = now.getEpochSecond() * 1_000_000_000 + now.getNano() - nanos;
    }

    /**
     * Moves the time forward, from one scheduled call to the next, and makes the calls. Wakes waiting threads, which
     * may still be waking up when this method returns.
     *
     * @throws IllegalArgumentException if the step is negative
     * @throws ArithmeticException if the time would exceed 292 years
     */
    public void advance(Duration step) {
        check(!step.isNegative(), "step", "zero or more", step);
        lock.lock();
        try {
            end = Math.addExact(end, step.toNanos());
            for (Timer call = calls.peek(); call != null && call.nanos <= end; call = calls.peek()) {
                calls.remove(call);
                moveTo(Math.max(nanos, call.nanos));
                run(call);
            }
            moveTo(end);
        } finally {
            lock.unlock();
        }
    }

    private void moveTo(long moment) {
        nanos = moment;
        moved.signalAll();
    }

    /** Runs the call without the lock, since the call may wait for a thread that needs the lock. */
    private void run(Timer call) {
        lock.unlock();
        try {
            call.run();
        } finally {
            lock.lock();
        }
    }

    /**
     * Returns how many threads and scheduled calls wait for the time to move: waiting requests, delayed rejections,
     * futures. The library's own {@linkplain TimeSource#maintainAt upkeep} doesn't count.
     */
    public int waiting() {
        lock.lock();
        try {
            return parked + (int) calls.stream().filter(call -> !call.isUpkeep).count();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void parkUntil(long nanos) throws InterruptedException {
        if (nanos <= this.nanos) {
            return;
        }
        lock.lockInterruptibly();
        parked++;
        try {
            while (this.nanos < nanos) {
                moved.await();
            }
        } finally {
            parked--;
            lock.unlock();
        }
    }

    /**
     * Schedules a call on the thread that moves the time to the moment; makes it here and now if the moment is past.
     */
    @Override
    public Future<?> callAt(long nanos, Runnable call) {
        return callAt(nanos, call, false);
    }

    @Override
    public Future<?> maintainAt(long nanos, Runnable upkeep) {
        return callAt(nanos, upkeep, true);
    }

    private Timer callAt(long nanos, Runnable call, boolean isUpkeep) {
        Timer scheduled;
        lock.lock();
        try {
            scheduled = new Timer(nanos, scheduledCount++, call, isUpkeep);
            if (nanos > this.nanos) {
                calls.add(scheduled);
                return scheduled;
            }
        } finally {
            lock.unlock();
        }
        scheduled.run();
        return scheduled;
    }

    private final class Timer extends FutureTask<@Nullable Void> {

        private final long nanos;
        private final long number;
        private final boolean isUpkeep;

        Timer(long nanos, long number, Runnable call, boolean isUpkeep) {
            super(call, null);
            this.nanos = nanos;
            this.number = number;
            this.isUpkeep = isUpkeep;
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            lock.lock();
            try {
                calls.remove(this);
            } finally {
                lock.unlock();
            }
            return super.cancel(mayInterrupt);
        }
    }
}
