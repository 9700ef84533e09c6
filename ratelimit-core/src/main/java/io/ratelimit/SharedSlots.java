package io.ratelimit;

import io.ratelimit.Decision.Outcome;
import java.util.function.IntSupplier;

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

    /** Returns how many calls of the policy run in this process. */
    int held();

    /** Returns how many calls of a key run in this process. */
    int held(String key);

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

        /** Releases a slot that the call has. Called once. It doesn't wait for the backend. */
        void release();
    }
}
