package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Time that stands still until it is told to move: for tests of limits, which then need no sleep. Moving it wakes who
 * waits for it. Starts at zero. Thread-safe.
 */
public final class ManualTimeSource implements TimeSource {

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition moved = lock.newCondition();
    private final PriorityQueue<Call> calls = new PriorityQueue<>(
            Comparator.comparingLong((Call call) -> call.nanos).thenComparingLong(call -> call.number));
    private volatile long nanos;
    private long end;
    private long made;
    private int parked;

    @Override
    public long nanoTime() {
        return nanos;
    }

    /**
     * Moves the time forward, from moment to moment for which a call was ordered, and makes the calls. Threads that
     * wait are woken, but may still be on their way when this returns.
     *
     * @throws IllegalArgumentException if the step is negative
     */
    public void advance(Duration step) {
        check(!step.isNegative(), "step", "zero or more", step);
        lock.lock();
        try {
            end = Math.addExact(end, step.toNanos());
            for (Call call = calls.peek(); call != null && call.nanos <= end; call = calls.peek()) {
                calls.remove(call);
                moveTo(Math.max(nanos, call.nanos));
                make(call);
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

    /** Without the lock, for it may wait for another thread that wants it. */
    private void make(Call call) {
        lock.unlock();
        try {
            call.run();
        } finally {
            lock.lock();
        }
    }

    /** How many wait for the time to move: threads, and calls that were ordered. */
    public int waiting() {
        lock.lock();
        try {
            return parked + calls.size();
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

    /** Has the call made by the thread that moves the time there; by this one at once if the moment is past. */
    @Override
    public Future<?> callAt(long nanos, Runnable call) {
        Call ordered = order(nanos, call);
        if (nanos <= this.nanos) {
            ordered.run();
        }
        return ordered;
    }

    private Call order(long nanos, Runnable call) {
        lock.lock();
        try {
            Call ordered = new Call(nanos, made++, call);
            if (nanos > this.nanos) {
                calls.add(ordered);
            }
            return ordered;
        } finally {
            lock.unlock();
        }
    }

    private final class Call extends FutureTask<@Nullable Void> {

        private final long nanos;
        private final long number;

        Call(long nanos, long number, Runnable call) {
            super(call, null);
            this.nanos = nanos;
            this.number = number;
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
