package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * A place for buckets: this process, or a remote backend. Use {@link #local}, or implement it for another backend.
 *
 * <p>An implementation must
 *
 * <ul>
 *   <li>give a key a full bucket at its first charge, and forget a bucket only when it is full again;
 *   <li>share the buckets of policies of the same name, and keep those of different names apart;
 *   <li>take all charges of a call or none;
 *   <li>count by the charge's spec: if the bucket was last used under another spec, keep its tokens, cut to the new
 *       capacity;
 *   <li>never log a key, or put it into the message of an exception, since it may come from a client;
 *   <li>be thread-safe.
 * </ul>
 *
 * <p>A store makes its answers with {@link Answer#allowed(Charge, BucketSnapshot, java.time.Duration)} and
 * {@link Answer#denied(Charge, Decision.Outcome, BucketSnapshot, java.time.Duration)}, and its decision from them with
 * {@link Decision#of(List)}. If the store needs a note to give tokens back correctly, such as the moment of the take,
 * it attaches one by {@link Answer#withReceipt}. Only the store reads this {@linkplain Answer#receipt receipt}, in
 * {@link #giveBack}.
 */
public interface BucketStore {

    /** Returns a store in the memory of this process. */
    static BucketStore local(TimeSource time) {
        return new LocalBucketStore(time);
    }

    /**
     * Takes all of the charges or none; an empty list is allowed. All charges have keys: {@link Throttlers} denies the
     * others.
     *
     * @return the decision, with the answer of each bucket in the order of the charges. If the call is denied, the
     *     answers of buckets that have the tokens are allowed, and they keep the tokens. A store whose buckets are slow
     *     to reach may leave out buckets that it didn't call because another had denied
     * @throws BackendException if the backend fails; some or all of the tokens may be taken then
     */
    Decision take(List<Charge> charges);

    /**
     * Like {@link #take}, but takes tokens ahead if they come within the charge's {@link Charge#maxWait}: the call may
     * proceed after {@link Decision#waitNanos}. First come, first served: later calls never overtake this one.
     *
     * @throws BackendException if the backend fails; some or all of the tokens may be taken then
     */
    Decision reserve(List<Charge> charges);

    /**
     * Like {@link #take}, for a call that also needs slots which this store {@linkplain #slots shares}. The store may
     * decide the requests for slots, if that saves calls of the backend: the call is denied if one of them is denied. The
     * caller decides the others after an allowed take, and puts the tokens back if a slot is missing. The default decides none.
     */
    default Decision takeWithSlots(List<Charge> charges, List<SharedSlots.Request> slots) {
        return take(charges);
    }

    /**
     * Puts tokens back. A full bucket stays full, and tokens of a key without a bucket are dropped. While other calls
     * wait, only tokens that no waiting call depends on come back, because a waiting call's turn is a promise.
     *
     * @param taken answers of allowed decisions of this store, with their receipts
     * @throws BackendException if the backend fails; some or all of the tokens may be lost then
     */
    void giveBack(List<Answer> taken);

    /**
     * Replaces the cost of a take by the actual cost, once. If it is lower, the rest comes back by the rules of {@link
     * #giveBack}. If it is higher, the difference is taken even if the bucket has too few tokens: the bucket is then in
     * debt, and allows no call until time has paid the debt. Calls that already wait keep their turn. A store may leave
     * out the part of a debt that would take longer than 365 days to pay.
     *
     * <p>The default gives back a part of the take, with its receipt, or reserves the difference. The time since the take
     * then pays for this part first, and not for the actual cost: if it has brought tokens, as many fewer come back. A
     * store without debts can reserve no more than the capacity; a store whose receipts don't permit a part must override
     * this method.
     *
     * @param taken an answer of an allowed decision of this store, with its receipt
     * @param cost the actual cost, from 0 on
     * @return false if not all of a higher cost was taken
     * @throws BackendException if the backend fails; the bucket may count the old or the new cost then
     */
    default boolean settle(Answer taken, long cost) {
        Charge charge = taken.charge();
        long more = cost - charge.cost();
        if (more < 0) {
            giveBack(List.of(taken.withCharge(charge.withCost(-more))));
        }
        long reserved = Math.min(more, charge.spec().capacity());
        return more <= 0
                || reserve(List.of(charge.withCost(reserved).withMaxWait(ThrottlePolicy.LONGEST_WAIT)))
                                .allowed()
                        && reserved == more;
    }

    /**
     * Returns the executor for settlements on threads that must not wait for the store. The default runs them at once.
     * The executor rejects settlements that it can't make.
     */
    default Executor settlements(ThrottlePolicy policy) {
        return Runnable::run;
    }

    /**
     * Returns the bucket of a charge as it is now; a full one if the key has no bucket. It is the charge's guaranteed share
     * if it has one, and otherwise the bucket without the tokens that the charge has to leave.
     *
     * @throws BackendException if a remote bucket can't be read
     */
    BucketSnapshot snapshot(Charge charge);

    /**
     * Forgets the bucket of a charge, so that the next call finds it full. An overflow bucket, which other keys share,
     * stays.
     *
     * @throws BackendException if a remote bucket perhaps wasn't forgotten
     */
    void reset(Charge charge);

    /**
     * Returns whether the store keeps the {@linkplain Charge#share shares} of charges of a policy. If it doesn't, {@link
     * Throttlers} reject the policy if it has shares.
     */
    default boolean keepsShares(ThrottlePolicy policy) {
        return false;
    }

    /**
     * Returns how many tokens of remote buckets this process has taken ahead and not used yet, by the policy's {@link
     * ThrottlePolicy#lease}.
     */
    default long leased(ThrottlePolicy policy) {
        return 0;
    }

    /**
     * Returns the slots of a policy's calls in flight that processes share, the same ones for each call; null if each process
     * counts its own calls.
     */
    default @Nullable SharedSlots slots(ThrottlePolicy policy) {
        return null;
    }

    /** Returns the backend that decides for a policy; null if this process decides. */
    default @Nullable Backend backend(ThrottlePolicy policy) {
        return null;
    }

    /** Returns how many buckets of a policy this process holds, without remote ones. */
    default long size(ThrottlePolicy policy) {
        return 0;
    }
}
