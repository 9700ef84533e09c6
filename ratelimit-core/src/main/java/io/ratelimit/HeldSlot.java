package io.ratelimit;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A slot that a call holds until it is complete. Thread-safe. */
final class HeldSlot extends Unreleased {

    private static final VarHandle RELEASED;

    static {
        try {
            RELEASED = MethodHandles.lookup().findVarHandle(HeldSlot.class, "released", boolean.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    /** The start of a call whose time is not measured. */
    private static final long UNMEASURED = Long.MIN_VALUE;

    private final PolicyThrottler throttler;
    private final InFlightCalls calls;
    private @Nullable KeySlots slots;
    private SharedSlots.@Nullable Slot shared;
    private long since = UNMEASURED;
    private volatile boolean released;

    HeldSlot(PolicyThrottler throttler, KeySlots slots, InFlightCalls calls) {
        this(throttler, slots, null, calls);
    }

    HeldSlot(PolicyThrottler throttler, SharedSlots.Slot shared, InFlightCalls calls) {
        this(throttler, null, shared, calls);
    }

    private HeldSlot(
            PolicyThrottler throttler,
            @Nullable KeySlots slots,
            SharedSlots.@Nullable Slot shared,
            InFlightCalls calls) {
        this.throttler = throttler;
        this.slots = slots;
        this.shared = shared;
        this.calls = calls;
    }

    /** Measures the time from now on if it is needed. Precedes the end of the call's decision. */
    void start() {
        if (throttler.measuresHeld()) {
            since = calls.time.nanoTime();
        }
    }

    /** Releases the slot, unless it has been released before. If that overflows the stack, the next call releases it. */
    void release() {
        if (RELEASED.compareAndSet(this, false, true)) {
            long heldNanos = heldNanos();
            try {
                releaseSlots();
            } catch (StackOverflowError overflow) {
                synchronized (calls) { // needs no stack
                    next = calls.unreleased;
                    calls.unreleased = this;
                }
                throw overflow;
            }
            if (heldNanos != UNMEASURED) {
                throttler.slots().record(heldNanos);
                throttler.listener().released(heldNanos);
            }
        }
    }

    /** Releases the slot of a call that got no decision, so that nothing else releases it. May be repeated if it failed. */
    @Override
    void releaseSlots() {
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
            return since == UNMEASURED ? UNMEASURED : calls.time.nanoTime() - since;
        } catch (RuntimeException | Error broken) {
            return UNMEASURED;
        }
    }
}
