package io.ratelimit.remote.inflight;

import io.ratelimit.BackendException;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.SharedSlots;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A store that keeps registers of calls in flight: for each key one register for each process. A {@link
 * io.ratelimit.BucketStore} that implements this interface too shares the slots of its policies. Thread-safe.
 *
 * <p>A register has the number of its last claim, its slots, how many of them are usable, and a deadline by the store's clock.
 * A call of {@link #set} is atomic and does
 *
 * <pre>
 * remove registers past their deadline;  a number not above the register's changes nothing
 * usable = max(0, min(want, max(limit - slots of the others, usable so far)))
 * slots  = max(have, usable);  deadline = now + time to live;  those of the others are at most that, if the clock went back
 * </pre>
 *
 * <p>The usable slots of all registers are never more than the limit. A claim either doesn't raise those of its own register, or
 * raises them to at most the limit less the slots of the others.
 */
public interface RegisterStore {

    /**
     * Sets the register of this process, without waiting.
     *
     * @return the reply, which may fail; or may never come
     * @throws BackendException if there is no connection
     */
    CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive);

    /** Returns whether {@link #take} sets registers in the step that takes tokens. */
    default boolean carriesClaims() {
        return false;
    }

    /**
     * Takes all of the charges or none at once, and sets the registers of this process in the same step. If a call gets no slot
     * by its claim, no tokens are taken. If tokens are short, no register is set, and the claims are withdrawn.
     *
     * @return the decision, with a denial of the first charge if a call got no slot
     * @throws BackendException if the store fails; tokens may be taken and registers set then
     */
    default Decision take(List<Charge> charges, List<CarriedClaim> claims, Duration timeToLive) {
        throw new UnsupportedOperationException();
    }

    /**
     * Returns the exception for a reply that failed.
     *
     * @param began when the call began, as {@link System#nanoTime}
     */
    BackendException failure(Throwable failure, long began);

    /**
     * The slots that a process asks for. Absolute numbers, so that a lost claim is repaired by the next one.
     *
     * @param number larger than that of each earlier claim of the process
     * @param have the calls that run in the process
     * @param want the slots that the process could use, with those of the calls that run
     * @param limit the calls that may run in all processes
     */
    record Claim(long number, int have, int want, int limit) {}

    /**
     * The reply to a claim.
     *
     * @param usable the slots that the process may use; below zero if the claim changed nothing
     * @param others the slots of all other processes
     */
    record Reply(int usable, int others) {}

    /**
     * A claim that a take of tokens carries, for one call that needs a slot beside the tokens. The store completes it once, by
     * {@link #replied} or {@link #withdraw}, before the take returns. For one thread.
     */
    final class CarriedClaim {

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
            register.withdraw(claim, request);
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
}
