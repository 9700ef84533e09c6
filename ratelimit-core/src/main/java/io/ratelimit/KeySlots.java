package io.ratelimit;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/** The held slots of one key, and the calls that wait for a slot: first come, first served. Thread-safe. */
final class KeySlots {
    /*
     * Why one int is enough while no call waits. It counts the held slots, and takes and releases race on one
     * compare-and-set. A counter leaves the map only after it was closed for good, which only a counter of zero can be:
     * a thread that still finds it looks the key up again, so no slot is ever counted in a counter that the map has
     * forgotten. While calls wait, one bit of the int sends every thread to the queue's lock. A released slot then goes
     * to the first waiting call, and the count stays: a newcomer never sees a free slot.
     */

    private static final int CLOSED = -1;
    private static final int WAITING = 1 << 30;
    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(KeySlots.class, "state", int.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    /** The queue of most keys, for which no call ever waits. Not changed. */
    private static final Deque<Waiter> NONE = new ArrayDeque<>(0);

    enum Take {
        TAKEN,
        DENIED,
        /** The counter has left the map, or is about to, so the caller looks the key up again. */
        CLOSED
    }

    private final String key;
    private volatile int state;
    private Deque<Waiter> waiters = NONE; // guarded by this

    KeySlots(String key) {
        this.key = key;
    }

    int held() {
        int seen = state;
        return seen == CLOSED ? 0 : seen & ~WAITING;
    }

    /** Takes a slot, if fewer than the limit are held and no call waits. */
    Take take(int limit) {
        while (true) {
            int seen = state;
            if (seen == CLOSED) {
                return Take.CLOSED;
            } else if (seen >= limit) { // also if calls wait, since the bit is above every limit
                return Take.DENIED;
            } else if (STATE.compareAndSet(this, seen, seen + 1)) {
                return Take.TAKEN;
            }
        }
    }

    String key() {
        return key;
    }

    /** Closes the slots for good if none is held, and returns whether it did. */
    boolean close() {
        return STATE.compareAndSet(this, 0, CLOSED);
    }

    /** Releases a slot, and returns whether it was the last one. If this throws, the slot isn't released. */
    boolean release() {
        while (true) {
            int seen = state;
            if ((seen & WAITING) != 0) {
                if (releaseToWaiter()) {
                    return false;
                }
            } else if (STATE.compareAndSet(this, seen, seen - 1)) {
                return seen == 1;
            }
        }
    }

    private boolean isWaitedFor() {
        int seen = state;
        return seen != CLOSED && (seen & WAITING) != 0;
    }

    private synchronized boolean releaseToWaiter() {
        if (!isWaitedFor()) {
            return false;
        }
        state = state - 1;
        try {
            handOver();
        } catch (StackOverflowError overflow) { // the next call that joins or leaves the queue hands the slot over
        }
        return true;
    }

    /** Gives free slots to the calls that wait, for instance after their limit was raised. */
    synchronized void handOver() {
        if (!isWaitedFor()) {
            return;
        }
        while (!waiters.isEmpty() && held() < waiters.element().limit.getAsInt()) {
            Waiter first = waiters.remove();
            state = state + 1; // no other thread changes it while the bit is set
            first.served = true; // with the count: what follows may need more stack than there is
            first.ended.countDown();
        }
        if (waiters.isEmpty()) {
            state = state & ~WAITING;
        }
    }

    /**
     * Takes a slot as {@link #take} does, or joins the queue.
     *
     * @return the call in the queue, or with its slot; null if the slots are closed
     */
    @Nullable
    synchronized Waiter enqueue(IntSupplier limit) {
        Waiter waiter = new Waiter(limit);
        while (true) {
            Take taken = take(limit.getAsInt());
            int seen = state;
            if (taken == Take.CLOSED || seen == CLOSED) {
                return null;
            }
            if (taken == Take.TAKEN) {
                waiter.served = true;
                return waiter;
            }
            waiters = waiters == NONE ? new ArrayDeque<>() : waiters;
            if (seen != 0 && STATE.compareAndSet(this, seen, seen | WAITING)) {
                waiters.add(waiter);
                return waiter;
            }
        }
    }

    final class Waiter {

        private final IntSupplier limit;
        private final CountDownLatch ended = new CountDownLatch(1);
        private boolean served; // guarded by the slots

        private Waiter(IntSupplier limit) {
            this.limit = limit;
        }

        /** Ends the wait without a slot, unless it has ended before. */
        void giveUp() {
            synchronized (KeySlots.this) {
                if (waiters.remove(this)) {
                    ended.countDown();
                    handOver();
                }
            }
        }

        /** Null unless the wait has ended with a slot. */
        @Nullable
        KeySlots slots() {
            synchronized (KeySlots.this) {
                return served ? KeySlots.this : null;
            }
        }

        /**
         * Parks the thread until the wait ends, which is at the latest after a time of the machine's clock.
         *
         * @throws InterruptedException if the thread is interrupted meanwhile; the call may have a slot then
         */
        void await(long nanos) throws InterruptedException {
            handOver(); // the limit may have been raised before the call was in the queue
            if (slots() == null && !ended.await(nanos, TimeUnit.NANOSECONDS)) {
                giveUp();
            }
        }
    }
}
