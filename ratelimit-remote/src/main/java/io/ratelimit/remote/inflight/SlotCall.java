package io.ratelimit.remote.inflight;

import io.ratelimit.Decision.Outcome;
import io.ratelimit.SharedSlots;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntSupplier;

/** A call, and its slot if it has one. It completes when it is decided. Thread-safe. */
final class SlotCall extends CompletableFuture<Outcome> implements SharedSlots.Slot {

    private final BusyKey key;
    final IntSupplier limit;

    /** Whether the call waits for a slot, and not for the next reply only. */
    final boolean waits;

    boolean claimed; // guarded by the key
    boolean counted; // whether the register counts this call; guarded by the key

    /** Whether the caller got an exception, so that nobody would release a slot. */
    volatile boolean abandoned;

    private volatile boolean fallback;
    private volatile int free;

    SlotCall(BusyKey key, IntSupplier limit, boolean waits) {
        this.key = key;
        this.limit = limit;
        this.waits = waits;
    }

    /**
     * @param fallback whether the rule for a failed backend decided
     * @param free about how many more calls of the key could start
     */
    void decide(Outcome outcome, boolean fallback, int free) {
        this.fallback = fallback;
        this.free = free;
        complete(outcome);
    }

    /**
     * Ends the wait for a reply: if there is none in time, the rule for a failed backend decides.
     *
     * @param congested whether the reason is this process, and the store may well be healthy
     */
    void endAsking(boolean congested) {
        key.endAsking(this, congested);
    }

    /** Ends this call, whose caller gets an exception in place of it. */
    void withdraw() {
        key.withdraw(this);
    }

    @Override
    public Outcome outcome() {
        return getNow(Outcome.TOO_MANY_IN_FLIGHT);
    }

    @Override
    public boolean fallback() {
        return fallback;
    }

    @Override
    public int free() {
        return free;
    }

    @Override
    public void await(long nanos) throws InterruptedException {
        try {
            get(nanos, TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            giveUp();
        } catch (ExecutionException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public void giveUp() {
        if (!isDone()) {
            key.giveUp(this);
        }
    }

    @Override
    public void release() {
        key.release(this);
    }
}
