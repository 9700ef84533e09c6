package io.ratelimit;

import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/**
 * Answers for one policy: may this call go ahead? Thread-safe.
 *
 * <p>A policy with a key has a bucket for each key: say {@link #forKey} first.
 */
public interface Throttler {

    /** The policy that this answers for, as it is now: {@link #reconfigure} changes it. */
    ThrottlePolicy policy();

    /**
     * The throttler of one key.
     *
     * @param parts the texts of the key's parts, in the policy's order, none of them blank
     * @throws IllegalArgumentException if there are not as many as the policy's key has, or one is blank
     */
    Throttler forKey(String... parts);

    /**
     * The throttler of this key's bucket in a tier, or of the policy's own where the policy has no such tier.
     *
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     */
    Throttler inTier(String tier);

    /**
     * What a call of this cost is charged.
     *
     * @throws IllegalArgumentException if the cost is below 1
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     */
    Charge charge(long cost);

    /**
     * Takes the tokens and allows the call, or takes none and says why not. Where the policy is in shadow mode or off,
     * the answer is always yes.
     *
     * @throws IllegalArgumentException if the cost is below 1
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     */
    Decision decide(long cost);

    /**
     * Like {@link #decide}, for whom a yes or a no is enough.
     *
     * @throws IllegalArgumentException if the cost is below 1
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     */
    default boolean tryAcquire(long cost) {
        return decide(cost).allowed();
    }

    /**
     * Like {@link #decide}, but waits in line for tokens that come soon enough.
     *
     * @param maxWait the longest wait, whatever the policy's; at most 365 days
     * @throws IllegalArgumentException if the cost is below 1 or the wait is negative or above 365 days
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     * @throws InterruptedException if the thread is interrupted while it waits; the tokens are given back
     */
    Decision acquire(long cost, Duration maxWait) throws InterruptedException;

    /**
     * Like {@link #acquire}, for whom a yes or a no is enough.
     *
     * @throws IllegalArgumentException if the cost is below 1 or the wait is negative or above 365 days
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     * @throws InterruptedException if the thread is interrupted while it waits; the tokens are given back
     */
    default boolean tryAcquire(long cost, Duration maxWait) throws InterruptedException {
        return acquire(cost, maxWait).allowed();
    }

    /**
     * The bucket as it is now. A key that was never seen has a full one.
     *
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     * @throws BackendException if the bucket is not in this process and can't be seen
     */
    BucketSnapshot snapshot();

    /**
     * Forgets the bucket, so that the next call finds it full.
     *
     * @throws IllegalStateException if the policy has a key and this is not the throttler of one
     * @throws BackendException if the bucket is not in this process, and perhaps wasn't forgotten
     */
    void reset();

    /**
     * Changes size and rate of the policy while it runs, but for its tiers; asked of the throttler of a tier, those of the
     * tier. All keys follow at their next use: the tokens that are there are kept, cut to the new capacity, and the time
     * until then counts at the old rate. Who waits in line keeps his moment. Of two changes at once the later holds.
     *
     * @throws IllegalArgumentException if a check refuses it; the old one stays
     */
    default void reconfigure(BucketSpec spec) {
        reconfigure(before -> spec);
    }

    /**
     * Like {@link #reconfigure(BucketSpec)}, with what it is changed to made of what it is: no other change comes between.
     *
     * @throws IllegalArgumentException if a check refuses it; the old one stays
     */
    void reconfigure(UnaryOperator<BucketSpec> change);

    /**
     * Changes size and rate of a tier while it runs, as {@link #reconfigure(BucketSpec)} does for those without a tier.
     *
     * @throws IllegalArgumentException if the policy has no such tier, or a check refuses it; the old one stays
     */
    default void reconfigure(String tier, BucketSpec spec) {
        reconfigure(tier, before -> spec);
    }

    /**
     * Like {@link #reconfigure(String, BucketSpec)}, with what it is changed to made of what it is: no other change comes
     * between.
     *
     * @throws IllegalArgumentException if the policy has no such tier, or a check refuses it; the old one stays
     */
    void reconfigure(String tier, UnaryOperator<BucketSpec> change);

    /**
     * Has the policy checked, as it is now and as it would be after each change: what the check throws refuses the change.
     * For callers that rely on something, such as a capacity of no less than what all their calls cost.
     *
     * @param check throws an {@link IllegalArgumentException} that says what must hold; is called by one thread at a time
     */
    void checkChanges(Consumer<ThrottlePolicy> check);
}
