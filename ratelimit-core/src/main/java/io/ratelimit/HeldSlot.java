package io.ratelimit;

import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A slot that a call holds until it is complete. Thread-safe. */
final class HeldSlot extends AtomicBoolean {

    private static final long serialVersionUID = 1;

    private final transient PolicyThrottler throttler;
    private final transient @Nullable KeySlots slots;
    private final transient SharedSlots.@Nullable Slot shared;
    private final transient TimeSource time;
    private final transient long since;

    HeldSlot(PolicyThrottler throttler, KeySlots slots, TimeSource time, long since) {
        this(throttler, slots, null, time, since);
    }

    HeldSlot(PolicyThrottler throttler, SharedSlots.Slot shared, TimeSource time, long since) {
        this(throttler, null, shared, time, since);
    }

    private HeldSlot(
            PolicyThrottler throttler,
            @Nullable KeySlots slots,
            SharedSlots.@Nullable Slot shared,
            TimeSource time,
            long since) {
        this.throttler = throttler;
        this.slots = slots;
        this.shared = shared;
        this.time = time;
        this.since = since;
    }

    /** Releases the slot, unless it has been released before. */
    void release() {
        if (compareAndSet(false, true)) {
            long heldNanos = time.nanoTime() - since;
            if (slots != null) {
                throttler.slots().release(slots);
            } else if (shared != null) {
                shared.release();
            }
            throttler.slots().record(heldNanos);
            throttler.listener().released(heldNanos);
        }
    }
}
