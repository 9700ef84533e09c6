package io.ratelimit.remote.inflight;

import io.ratelimit.remote.inflight.RegisterStore.Claim;
import java.time.Duration;

/** The register of one key, as this process knows it, and the calls that run in this process. For one thread at a time. */
final class Register {
    /*
     * Why there are never more calls than slots. The store grants each process a number of usable slots, and their sum
     * never exceeds the limit. So it suffices that a process never runs more calls than the store has as usable, although
     * the reply may be late or lost. Two orders make sure of it. A process lowers its own number before it sends a lower
     * one: the store may give the slot to another process as soon as it has the claim. And a process uses its slots until a
     * lifetime after it sent the claim, and not after it got the reply: the store counts the lifetime from a moment between
     * the two. Only one claim is under way at a time, and a reply to any other is ignored.
     * Example: 4 of 10 slots are usable and one call ends. The number is 3 at once; then the claim for 3 is sent. If it is
     * lost, the store has one slot too many for this process until the next claim, but never one too few.
     * Calls that the store didn't grant may run too: by the rule of a failed backend, or since a register has run out while
     * this process stood still. A claim registers them (have), and the store grants nobody a slot until the sum is below
     * the limit.
     */

    /** The part of a lifetime in which slots are used: the clocks of the store and of this process may differ. */
    private static final double VALID_PART = 0.999;

    private final long validNanos;

    int running;
    int usable;
    int claimed; // the calls that ran when the last claim was made
    long until;
    long sentAt;
    long awaited; // the number of the claim that is under way; 0 for none
    private int usableBefore; // before the last claim was made, with the two that follow
    private int claimedBefore;
    private long sentBefore;

    Register(Duration timeToLive) {
        this.validNanos = (long) (timeToLive.toNanos() * VALID_PART);
    }

    /** Returns how many calls the store lets run in this process. */
    int usable(long now) {
        return now - until < 0 ? usable : 0;
    }

    boolean hasFree(int limit, long now) {
        return running < Math.min(limit, usable(now));
    }

    boolean start(int limit, long now) {
        boolean free = hasFree(limit, now);
        running += free ? 1 : 0;
        return free;
    }

    /** Starts a call without a slot, by the rule of a failed backend. */
    void startWithout() {
        running++;
    }

    /** Returns whether the store counts calls beyond the usable slots that don't run, or doesn't count some that do. */
    boolean isMisstated(long now) {
        return running != claimed && Math.max(running, claimed) > usable(now);
    }

    /** Ends a call, unless it isn't counted. */
    void end(SlotCall call) {
        running -= call.counted ? 1 : 0;
        call.counted = false;
    }

    /** Makes a claim that the caller sends next. */
    Claim claim(long number, int want, int limit, long now) {
        Claim claim = new Claim(number, running, want, limit);
        int lowered = Math.min(usable(now), want);
        usableBefore = usable;
        claimedBefore = claimed;
        sentBefore = sentAt;
        usable = lowered;
        claimed = running;
        awaited = number;
        sentAt = now;
        return claim;
    }

    void replied(long number, int granted) {
        if (number == awaited) {
            awaited = 0;
            usable = granted;
            until = sentAt + validNanos;
        }
    }

    /** Records that the claim under way wasn't made after all: the store has what it had before. */
    void withdraw() {
        awaited = 0;
        usable = usableBefore;
        claimed = claimedBefore;
        sentAt = sentBefore;
    }

    /** Records that the claim under way got no reply. */
    void gaveUp() {
        awaited = 0;
    }
}
