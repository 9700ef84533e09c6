package io.ratelimit;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A slot that a call holds until it is complete. The slot is itself the flag of its release: one object less for each call.
 * Thread-safe.
 */
final class HeldSlot extends AtomicBoolean {

    private static final long serialVersionUID = 1;

    /** The start of a call whose time is not measured. */
    private static final long UNMEASURED = Long.MIN_VALUE;

    private final transient PolicyThrottler throttler;
    private transient @Nullable KeySlots slots;
    private transient SharedSlots.@Nullable Slot shared;
    private final transient TimeSource time;
    private transient long since = UNMEASURED;

    HeldSlot(PolicyThrottler throttler, KeySlots slots, TimeSource time) {
        this(throttler, slots, null, time);
    }

    HeldSlot(PolicyThrottler throttler, SharedSlots.Slot shared, TimeSource time) {
        this(throttler, null, shared, time);
    }

    private HeldSlot(
            PolicyThrottler throttler, @Nullable KeySlots slots, SharedSlots.@Nullable Slot shared, TimeSource time) {
        this.throttler = throttler;
        this.slots = slots;
        this.shared = shared;
        this.time = time;
    }

    /** Measures the time from now on if it is needed. Precedes the end of the call's decision. */
    void start() {
        if (throttler.measuresHeld()) {
            since = time.nanoTime();
        }
    }

    /** Releases the slot, unless it has been released before. */
    void release() {
        if (compareAndSet(false, true)) {
            long heldNanos = heldNanos();
            releaseSlot();
            if (heldNanos != UNMEASURED) {
                throttler.slots().record(heldNanos);
                throttler.listener().released(heldNanos);
            }
        }
    }

    /** Releases the slot of a call that got no decision, so that nothing else releases it. May be repeated if it failed. */
    void releaseSlot() {
        KeySlots own = slots;
        SharedSlots.Slot other = shared;
        if (own != null) {
            boolean last = own.release();
            slots = null;
            throttler.slots().released(own, last);
        } else if (other != null) {
            other.release();
            shared = null;
        }
    }

    /** Releases all slots. If a release throws, as that of a store of the application may, the others follow. */
    static void releaseAll(List<HeldSlot> slots) {
        RuntimeException exception = null;
        Error error = null;
        for (int i = 0; i < slots.size(); i++) {
            try {
                slots.get(i).release();
            } catch (RuntimeException failed) {
                exception = failed;
            } catch (Error failed) {
                error = failed;
            }
        }
        if (error != null) {
            throw error;
        }
        if (exception != null) {
            throw exception;
        }
    }

    /** A clock that fails measures nothing, and keeps neither this slot nor the others of the call. */
    private long heldNanos() {
        try {
            return since == UNMEASURED ? UNMEASURED : time.nanoTime() - since;
        } catch (RuntimeException | Error broken) {
            return UNMEASURED;
        }
    }
}
