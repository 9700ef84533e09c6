package io.ratelimit.remote.inflight;

import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.SharedSlots;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;

/**
 * A claim that a take of tokens carries, for one call that needs a slot beside the tokens. The store completes it once, by
 * {@link #replied} or {@link #withdraw}, before the take returns. For one thread.
 */
public final class CarriedClaim {

    private final BucketName key;
    private final Claim claim;
    private final BusyKey register;
    private final SharedSlots.Request request;
    private boolean completed;

    CarriedClaim(BucketName key, Claim claim, BusyKey register, SharedSlots.Request request) {
        this.key = key;
        this.claim = claim;
        this.register = register;
        this.request = request;
    }

    /** Returns the key of the register. */
    public BucketName key() {
        return key;
    }

    /** Returns the claim. The call gets a slot if one more call may run than those of the claim. */
    public Claim claim() {
        return claim;
    }

    /** Records the reply of the store, which set the register. Decides the call. */
    public void replied(Reply reply) {
        completed = true;
        register.ended(claim, reply, true, false);
    }

    /** Records that the store left the register as it was. */
    public void withdraw() {
        completed = true;
        register.withdraw(request);
    }

    /** Records that the take failed: the store may have set the register. Decides the call by the rule for a failed backend. */
    void failed(boolean congested) {
        if (!completed) {
            register.ended(claim, null, true, congested);
        } else if (request.slot() instanceof SlotCall undecided) { // if the clock failed in its place
            undecided.endAsking(congested);
        }
    }
}
