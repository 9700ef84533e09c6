package io.ratelimit;

import java.time.Duration;

/**
 * Decides which calls may proceed, by the tokens of one bucket of a policy. Thread-safe.
 *
 * <ul>
 *   <li>{@link #tryAcquire(long)} and {@link #decide} answer at once; {@code decide} also returns the retry time and
 *       what is left.
 *   <li>{@link #tryAcquire(long, Duration)} and {@link #acquire} wait in the policy's queue for tokens that come in
 *       time.
 *   <li>{@link #snapshot} shows the bucket, {@link #reset} forgets it.
 * </ul>
 *
 * <p>If the policy is in shadow mode or off, each call is allowed. The throttler of a policy without a key is a
 * {@link GlobalThrottler}; {@link PolicyThrottler#forKey} returns the throttler of one key.
 */
public interface Throttler {

    /** Returns the policy as it is now; {@link PolicyThrottler#reconfigure} changes it. */
    ThrottlePolicy policy();

    /** Returns the throttler of this key's bucket in a tier, or this key's own if the policy has no such tier. */
    Throttler inTier(String tier);

    /**
     * Returns the charge of a call with this cost, for a decision over several policies.
     *
     * @throws IllegalArgumentException if the cost is below 1
     */
    Charge charge(long cost);

    /**
     * Takes the tokens and allows the call, or takes none and denies it. If the policy limits the calls in flight, release
     * the decision when the call is complete.
     *
     * @throws IllegalArgumentException if the cost is below 1
     * @throws BackendException if a remote store fails and has no fallback
     */
    Decision decide(long cost);

    /**
     * Takes the tokens and returns true, or takes none and returns false.
     *
     * @throws IllegalArgumentException if the cost is below 1
     * @throws IllegalStateException if the policy limits the calls in flight: only a decision can be released
     * @throws BackendException if a remote store fails and has no fallback
     */
    default boolean tryAcquire(long cost) {
        return allowedForGood(decide(cost));
    }

    /**
     * Takes the tokens and allows the call, if necessary after waiting for them in the policy's queue; or takes none
     * and denies it at once, because they don't come in time or the queue is full.
     *
     * @param maxWait the longest wait, which replaces the policy's; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if the cost is below 1 or the wait is negative
     * @throws BackendException if a remote store fails and has no fallback
     * @throws InterruptedException if the thread is interrupted while it waits; the tokens are given back
     */
    Decision acquire(long cost, Duration maxWait) throws InterruptedException;

    /**
     * Like {@link #acquire}, but returns only whether the call is allowed.
     *
     * @throws IllegalArgumentException if the cost is below 1 or the wait is negative
     * @throws IllegalStateException if the policy limits the calls in flight: only a decision can be released
     * @throws BackendException if a remote store fails and has no fallback
     * @throws InterruptedException if the thread is interrupted while it waits; the tokens are given back
     */
    default boolean tryAcquire(long cost, Duration maxWait) throws InterruptedException {
        return allowedForGood(acquire(cost, maxWait));
    }

    /**
     * Returns the bucket as it is now. A key without a bucket has a full one.
     *
     * @throws BackendException if a remote bucket can't be read
     */
    BucketSnapshot snapshot();

    /**
     * Forgets the bucket, so that the next call finds it full. An overflow bucket, which other keys share, stays.
     *
     * @throws BackendException if a remote bucket perhaps wasn't forgotten
     */
    void reset();

    /**
     * Returns whether a call is allowed, for a caller that doesn't keep the decision.
     *
     * @throws IllegalStateException if the call is in flight, since it could never be released
     */
    private static boolean allowedForGood(Decision decision) {
        if (decision.isInFlight()) {
            ThrottlePolicy policy = decision.taken().get(0).policy();
            PolicyThrottler throttler = policy.throttler();
            decision.release();
            if (throttler != null) {
                throttler.giveBack(decision);
            }
            throw new IllegalStateException("the policy '" + policy.name()
                    + "' limits the calls in flight: call decide or acquire, and release the decision after the call");
        }
        return decision.allowed();
    }
}
