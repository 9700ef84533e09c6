package io.ratelimit;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.List;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The slots of one policy's calls in flight that several processes share through a backend. A {@link BucketStore} that
 * shares slots returns them by {@link BucketStore#slots}. Thread-safe.
 */
public interface SharedSlots {

    /** Takes a slot of a charge's key, if one is free. Waits for the backend, but not longer than for a bucket. */
    Slot take(Charge charge);

    /**
     * Takes a slot of a charge's key, or joins the key's queue. Waiting calls of this process get slots in their order of
     * arrival.
     *
     * @param limit returns how many calls of the key may run, after changes too
     */
    Slot enqueue(Charge charge, IntSupplier limit);

    /** Returns a request for a slot of a charge's key, which isn't decided yet. */
    default Request request(Charge charge) {
        return new Request(this, charge);
    }

    /**
     * Returns the decision of a store that takes no tokens because a {@linkplain Request request} is denied. It names no
     * slot: the caller answers by the request.
     */
    static Decision denial(List<Charge> charges) {
        return Decision.of(List.of(Answer.denied(charges.get(0), Outcome.TOO_MANY_IN_FLIGHT, Duration.ZERO)));
    }

    /** Returns how many calls of the policy run in this process. */
    int held();

    /** Returns how many calls of a key run in this process. */
    int held(String key);

    /**
     * A slot that a call needs beside tokens. A {@link BucketStore#takeWithSlots store} may take both in
     * one step. For one thread.
     */
    final class Request {

        private final SharedSlots slots;
        private final Charge charge;
        private @Nullable Slot slot;

        private Request(SharedSlots slots, Charge charge) {
            this.slots = slots;
            this.charge = charge;
        }

        /** Returns the charge whose key needs a slot. */
        public Charge charge() {
            return charge;
        }

        /** Returns the slot, or the reason why there is none; null if the request isn't decided yet. */
        public @Nullable Slot slot() {
            return slot;
        }

        /** Decides this request; null if it isn't decided after all. */
        public void decide(@Nullable Slot slot) {
            this.slot = slot;
        }

        /** Takes the slot, unless this request is decided. Returns it, or the reason why there is none. */
        public Slot take() {
            Slot taken = slot == null ? slots.take(charge) : slot;
            slot = taken;
            return taken;
        }

        /** Joins the key's queue in place of a take that was denied. */
        Slot enqueue(IntSupplier limit) {
            Slot queued = slots.enqueue(charge, limit);
            slot = queued;
            return queued;
        }

        /** Releases the slot, and leaves the queue if the call is in it. */
        void release() {
            Slot last = slot;
            if (last != null) {
                last.giveUp();
                if (last.outcome() == Outcome.ALLOWED) {
                    last.release();
                }
                slot = null;
            }
        }

        boolean isDenied() {
            return slot != null && slot.outcome() != Outcome.ALLOWED;
        }
    }

    /** The slot of one call, or the reason why the call has none. Thread-safe. */
    interface Slot {

        /**
         * Returns {@link Outcome#ALLOWED} if the call has the slot, {@link Outcome#TOO_MANY_IN_FLIGHT} if it has none, and
         * {@link Outcome#BACKEND_FAILED} if it is denied because the backend failed.
         */
        Outcome outcome();

        /** Returns whether the policy's rule for a failed backend decided. */
        boolean fallback();

        /** Returns about how many more calls of the key could start. */
        int free();

        /**
         * Parks the thread until the wait ends, which is at the latest after a time of the machine's clock.
         *
         * @throws InterruptedException if the thread is interrupted meanwhile; the call may have a slot then
         */
        void await(long nanos) throws InterruptedException;

        /** Ends the wait without a slot, unless it has ended before. */
        void giveUp();

        /**
         * Releases a slot that the call has. Called once, or again if the stack overflowed. It doesn't wait for the backend.
         */
        void release();
    }
}
