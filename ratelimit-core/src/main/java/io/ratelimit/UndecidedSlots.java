package io.ratelimit;

import io.ratelimit.SharedSlots.Request;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The slots of a call until its decision has them, so that none is lost if the call fails. For one thread at a time. */
abstract class UndecidedSlots extends Unreleased {
    /*
     * Why a call never leaves a slot behind. Between two statements a thread may find that no memory or no stack is left. So
     * each slot is in a field or a list before anything else is called, and it leaves that place after it was released. A
     * release may overflow the stack too: a client that chooses how deep the application's calls are, as by nested JSON, can
     * hit the depth at which a take fits and its release doesn't. It can then be repeated by a thread with more stack left.
     */

    List<HeldSlot> held = List.of();
    List<Request> requests = List.of();

    /** A slot that no {@link HeldSlot} has yet, and its policy's slots. */
    @Nullable
    KeySlots taken;

    @Nullable
    PolicySlots takenFrom;

    /** Null if the call never waits. */
    @Nullable
    Waiting waiting;

    /** The waits of a call for its slots. */
    static final class Waiting {

        final long start;
        long nanos;
        KeySlots.@Nullable Waiter waiter;
        private WaitQueues.@Nullable Queue queue;

        Waiting(long start) {
            this.start = start;
        }

        /** Joins a policy's queue, and returns whether it has a place. */
        boolean join(WaitQueues.Queue queue, int limit) {
            boolean joined = queue.tryJoin(limit);
            this.queue = joined ? queue : null;
            return joined;
        }

        void leave() {
            WaitQueues.Queue joined = queue;
            if (joined != null) {
                joined.leave();
                queue = null;
            }
        }
    }

    /** Returns a list with one element more. Most lists have one, so the first needs no list that can grow. */
    static <T> List<T> with(List<T> list, T element) {
        if (list.isEmpty()) {
            return List.of(element);
        }
        List<T> longer = list.size() == 1 ? new ArrayList<>(list) : list;
        longer.add(element);
        return longer;
    }

    /** Releases all slots, and leaves the queues. If it fails because of an error, it can be called again. */
    @Override
    void releaseSlots() {
        if (waiting != null) {
            waiting.leave();
        }
        KeySlots.Waiter waiter = waiting == null ? null : waiting.waiter;
        if (waiting != null && waiter != null) {
            waiter.giveUp();
            taken = waiter.slots();
            waiting.waiter = null;
        }
        KeySlots own = taken;
        PolicySlots policy = takenFrom;
        if (own != null && policy != null) {
            boolean last = own.release();
            taken = null;
            policy.released(own, last);
        }
        try {
            releaseHeld(0);
        } finally {
            releaseRequests(0);
        }
    }

    /** If a release throws, as that of a store of the application may, the others follow. */
    private void releaseHeld(int from) {
        if (from < held.size()) {
            try {
                held.get(from).releaseSlots();
            } finally {
                releaseHeld(from + 1);
            }
        }
    }

    private void releaseRequests(int from) {
        if (from < requests.size()) {
            try {
                requests.get(from).release();
            } finally {
                releaseRequests(from + 1);
            }
        }
    }
}
