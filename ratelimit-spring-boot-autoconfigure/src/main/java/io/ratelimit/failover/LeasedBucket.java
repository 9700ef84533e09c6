package io.ratelimit.failover;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.failover.LeasingBucketStore.Grant;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** The leases of one remote bucket, and the result of the last request for a lease. Thread-safe. */
final class LeasedBucket {

    /**
     * The part of a lease that is used: a clock of this process may be slow by 1/1,000, compared with that of the
     * backend.
     */
    private static final double VALID_PART = 0.999;

    private final BucketSpec spec;
    private final Duration lease;
    private final AtomicBoolean requesting = new AtomicBoolean();
    private volatile Lease current;
    private volatile Lease previous;

    /** The tokens that were left in the previous lease when the current one began. */
    private volatile long carried;

    /** The moment until which calls are denied that cost at least {@link #deniedCost} and find no lease. */
    private volatile long deniedUntil;

    private volatile long deniedCost = Long.MAX_VALUE;

    LeasedBucket(Charge charge, long now) {
        this.spec = charge.spec();
        this.lease = charge.policy().lease();
        this.current = new Lease(0, 0, now, now, null);
        this.previous = current;
    }

    /** Returns the time for which tokens are leased. */
    Duration lease() {
        return lease;
    }

    /** Returns whether the leases are under the spec and the time of a charge. */
    boolean isOf(Charge charge) {
        return spec.equals(charge.spec()) && lease.equals(charge.policy().lease());
    }

    /** Returns the lease from which the tokens were taken; null if no lease has them. */
    @Nullable
    Lease take(long cost, long now) {
        Lease older = previous;
        if (older.get() > 0 && older.take(cost, now)) {
            return older;
        }
        Lease latest = current;
        return latest.take(cost, now) ? latest : null;
    }

    /**
     * Returns whether no other thread requests a lease now. If so, the caller must {@linkplain #endRequest end} its
     * request.
     */
    boolean startRequest() {
        return !requesting.get() && requesting.compareAndSet(false, true);
    }

    void endRequest() {
        requesting.set(false);
    }

    /** Returns whether at most a quarter of the latest lease is left. */
    boolean isMostlyUsed() {
        Lease latest = current;
        return latest.get() <= latest.tokens / 4;
    }

    /** Returns whether a call is denied if no lease has its tokens. */
    boolean denies(long cost, long now) {
        return cost >= deniedCost && now - deniedUntil < 0;
    }

    /**
     * Returns the maximum number of tokens for the next request: at least the cost, otherwise as {@link Leases}
     * describes.
     */
    long maxTokens(long cost, long now) {
        Lease last = current;
        double age = Math.max(now - last.since, 1);
        long used = last.tokens - last.get() + Math.max(carried - previous.get(), 0);
        double rate = used / age;
        long max = Math.min(2 * last.tokens, spec.capacity() / 8);
        return Math.max(Math.min((long) (rate * lease.toNanos() / 2), max), cost);
    }

    /**
     * Records a request that took tokens.
     *
     * @param tokens the tokens taken
     * @param left the tokens taken, without those of the charge
     * @param fewer whether the bucket had fewer tokens than the request was for
     * @param since the moment before the request was sent, from which the lease counts
     * @param grant what the store granted; null if only the charge was taken
     */
    synchronized void granted(long tokens, long left, boolean fewer, long since, @Nullable Grant grant) {
        long until = since + (long) (lease.toNanos() * VALID_PART);
        Lease before = current.get() > 0 ? current : previous;
        if (before.grant != null && grant != null && hasEnded(before.grant, grant)) {
            before.set(0);
        }
        previous = before;
        carried = before.get();
        current = new Lease(tokens, left, since, until, grant);
        deniedUntil = since + lease.toNanos() / 4;
        deniedCost = fewer ? 1 : Long.MAX_VALUE;
    }

    /** Returns whether a lease has ended by the backend's clock: the clock of a frozen machine may have stood still. */
    private boolean hasEnded(Grant before, Grant after) {
        return after.micros() - before.micros() >= lease.toNanos() / 1_000;
    }

    /** Records a request that took no tokens. */
    synchronized void denied(long cost, long since) {
        deniedUntil = since + lease.toNanos() / 4;
        deniedCost = cost;
    }

    /** Drops the leased tokens. They come back to the remote bucket with time. */
    synchronized void drop() {
        previous.set(0);
        current.set(0);
    }

    /** Returns the leased tokens that may still be used. */
    long tokens(long now) {
        Lease older = previous;
        Lease latest = current;
        return (latest.isValid(now) ? latest.get() : 0) + (older != latest && older.isValid(now) ? older.get() : 0);
    }

    /** Returns the denial of a charge that {@link #denies} is true for. */
    Answer denial(Charge charge, long now) {
        Duration retry = Duration.ofNanos(Math.max(deniedUntil - now, 1));
        Grant grant = current.grant;
        return grant == null
                ? Answer.denied(charge, Outcome.DENIED, retry)
                : Answer.denied(
                        charge,
                        Outcome.DENIED,
                        new BucketSnapshot(
                                grant.bucket().capacity(),
                                grant.bucket().rate(),
                                0,
                                retry,
                                grant.bucket().resetAfter()),
                        retry);
    }

    /** Tokens taken ahead of their use. The value is the number of tokens that are left. */
    static final class Lease extends AtomicLong {

        private static final long serialVersionUID = 1;

        private final transient long tokens;
        private final transient long since;
        private final transient long until;
        private final transient @Nullable Grant grant;

        Lease(long tokens, long left, long since, long until, @Nullable Grant grant) {
            super(left);
            this.tokens = tokens;
            this.since = since;
            this.until = until;
            this.grant = grant;
        }

        boolean isValid(long now) {
            return now - until < 0;
        }

        /** Takes tokens at a moment that the caller has read. Returns false if the lease has too few or has ended. */
        boolean take(long cost, long now) {
            if (!isValid(now)) {
                return false;
            }
            for (long left = get(); left >= cost; left = get()) {
                if (compareAndSet(left, left - cost)) {
                    return true;
                }
            }
            return false;
        }

        /** Returns the answer to a charge whose tokens were taken from this lease. */
        Answer answer(Charge charge, long now) {
            BucketSnapshot bucket = Objects.requireNonNull(grant).bucket();
            long passed = now - since;
            BucketSnapshot shown = new BucketSnapshot(
                    bucket.capacity(),
                    bucket.rate(),
                    bucket.available() + get(),
                    remaining(bucket.nextTokenAfter(), passed),
                    remaining(bucket.resetAfter(), passed));
            return Answer.allowed(charge, shown, Duration.ZERO).withReceipt(this);
        }

        /** Returns the receipt with which tokens of this lease go back to the store. */
        Object receipt(long cost) {
            return Objects.requireNonNull(grant).receipts().apply(cost);
        }

        private static Duration remaining(Duration wait, long passed) {
            return wait.isZero() ? wait : Duration.ofNanos(Math.max(wait.toNanos() - passed, 1));
        }
    }
}
