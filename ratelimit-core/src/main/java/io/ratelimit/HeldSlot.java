package io.ratelimit;

import java.util.concurrent.atomic.AtomicBoolean;

/** A slot that a call holds until it is complete. Thread-safe. */
final class HeldSlot extends AtomicBoolean {

    private static final long serialVersionUID = 1;

    private final transient PolicyThrottler throttler;
    private final transient String key;
    private final transient KeySlots slots;
    private final transient TimeSource time;
    private final transient long since;

    HeldSlot(PolicyThrottler throttler, String key, KeySlots slots, TimeSource time, long since) {
        this.throttler = throttler;
        this.key = key;
        this.slots = slots;
        this.time = time;
        this.since = since;
    }

    /** Releases the slot, unless it has been released before. */
    void release() {
        if (compareAndSet(false, true)) {
            long heldNanos = time.nanoTime() - since;
            throttler.slots().release(key, slots, heldNanos);
            throttler.listener().released(heldNanos);
        }
    }
}
