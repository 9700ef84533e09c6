package io.ratelimit.remote.lease;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.LeasingBucketStore.Grant;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
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

    /**
     * The time for which calls are denied after a request that got too little: a quarter of a lease. A limit of a bean or a
     * change may fill up faster than the start allows for the lease, which is in four leases.
     */
    private final long pauseNanos;

    private final AtomicReference<@Nullable CompletableFuture<Void>> request = new AtomicReference<>();
    private volatile Lease current;
    private volatile Lease previous;

    /** The tokens that were left in the previous lease when the current one began. */
    private volatile long carried;

    private volatile @Nullable Shortage shortage;

    /** Whether the leases were dropped after the request that is under way was sent. */
    private volatile boolean dropped;

    /** The moment of the request before the last one, and the tokens used between these two. */
    private volatile long usedSince;

    private volatile long usedBefore;

    /** A cost above the mean of calls that requested leases, unless all cost the same. Written by the requesting thread. */
    private volatile double largeCost;

    private volatile boolean tooSmall;

    /** The moment from which the time counts after which this bucket is forgotten. */
    private volatile long keptAt;

    /** @param calledAt the moment of an earlier call of the same cost */
    LeasedBucket(Charge charge, long calledAt) {
        this.spec = charge.spec();
        this.lease = charge.policy().lease();
        this.pauseNanos = Math.min(lease.toNanos() / 4, spec.timeToFull().toNanos() / 16);
        this.current = new Lease(charge.cost(), 0, calledAt, calledAt, null);
        this.previous = current;
        this.keptAt = calledAt;
        this.usedSince = calledAt;
        this.largeCost = charge.cost();
    }

    Duration lease() {
        return lease;
    }

    /** Returns whether half a lease has passed since this bucket was kept, and counts from now on if so. */
    boolean isToBeKept(long now) {
        boolean isDue = now - keptAt >= lease.toNanos() / 2;
        keptAt = isDue ? now : keptAt;
        return isDue;
    }

    boolean isOf(Charge charge) {
        return spec.equals(charge.spec()) && lease.equals(charge.policy().lease());
    }

    /**
     * Returns the lease from which the tokens were taken; null if the leases don't have them. The tokens of the previous
     * lease are used first, also where a call needs more. Tokens from both leases count as those of the previous one, which
     * ends sooner and whose tokens time pays first.
     */
    @Nullable
    Lease take(long cost, long now) {
        Lease older = previous;
        Lease latest = current;
        if (older.get() > 0 && (older.take(cost, now) || takeFromBoth(older, latest, cost, now))) {
            return older;
        }
        return latest.take(cost, now) ? latest : null;
    }

    private static boolean takeFromBoth(Lease older, Lease latest, long cost, long now) {
        if (older == latest || older.get() + latest.get() < cost) {
            return false;
        }
        long some = older.takeUpTo(cost, now);
        if (some > 0 && latest.take(cost - some, now)) {
            return true;
        }
        older.addAndGet(some);
        return false;
    }

    /** Takes as many of the tokens as the leases have, and returns their number. Leases with fewer tokens end. */
    long pay(long tokens, long now) {
        Lease older = previous;
        Lease latest = current;
        long paid = older.takeUpTo(tokens, now);
        paid += latest.takeUpTo(tokens - paid, now);
        if (paid < tokens) {
            older.end();
            latest.end();
        }
        return paid;
    }

    boolean mayHaveTokens(long now) {
        return request.get() != null || tokens(now) > 0;
    }

    /**
     * Returns whether no other thread requests a lease now. If so, the caller must {@linkplain #endRequest end} its
     * request.
     */
    boolean startRequest() {
        return request.get() == null && request.compareAndSet(null, new CompletableFuture<>());
    }

    void endRequest() {
        dropped = false;
        CompletableFuture<Void> ended = request.getAndSet(null);
        if (ended != null) {
            ended.complete(null);
        }
    }

    @Nullable
    CompletableFuture<Void> request() {
        return request.get();
    }

    /** Returns whether at most a quarter of the latest lease is left. */
    boolean isMostlyUsed() {
        Lease latest = current;
        return latest.get() <= latest.tokens / 4;
    }

    /** Returns whether the last request showed a bucket that is too empty for another one. */
    boolean isShort(long now) {
        Shortage latest = shortage;
        return latest != null && latest.isValid(now);
    }

    /** Returns the denial of a charge for which no lease has the tokens; null if the remote bucket may have them. */
    @Nullable
    Answer denial(Charge charge, long now) {
        Shortage latest = shortage;
        return latest != null && latest.isValid(now) && charge.cost() >= latest.minCost
                ? latest.denial(charge, now)
                : null;
    }

    /**
     * Returns the maximum number of tokens for the next request of a call: at least the cost, otherwise as {@link Leases}
     * describes. No more unless {@link #isBusy}: a lease would save few calls, and tokens that no call fits into would be lost.
     */
    long maxTokens(long cost, long now) {
        largeCost += (cost - largeCost) / (cost > largeCost ? 2 : 8);
        long wanted = Math.max(tokensAhead(now), cost);
        tooSmall = wanted > cost && !isBusy(now);
        return tooSmall ? cost : wanted;
    }

    /** Returns whether the last request of a call was for no lease, since its bucket isn't busy. */
    boolean isTooSmall() {
        return tooSmall;
    }

    /** Returns whether calls use the tokens of three large calls in half the time of a lease. */
    boolean isBusy(long now) {
        return tokensUsed(now) >= 3 * largeCost;
    }

    /** Returns the tokens that calls use in half the time of a lease, but at most those that a request may be for. */
    long tokensAhead(long now) {
        return (long) Math.min(tokensUsed(now), Math.min(2 * current.tokens, spec.capacity() / 8));
    }

    /** Returns the tokens that calls use in half the time of a lease, as they did since the request before the last one. */
    private double tokensUsed(long now) {
        return (usedBefore + used()) / (double) Math.max(now - usedSince, 1) * lease.toNanos() / 2;
    }

    private long used() {
        return current.tokens - current.get() + Math.max(carried - previous.get(), 0);
    }

    /**
     * @param left the tokens granted, without those of the charge
     * @param fewer whether the request was for more tokens
     * @param since the moment before the request was sent, from which the lease counts
     */
    synchronized void granted(Grant grant, long left, boolean fewer, long since) {
        if (dropped) {
            return;
        }
        replace(new Lease(grant.tokens(), left, since, end(since), grant));
        BucketSnapshot after = grant.bucket();
        shortage = fewer
                ? new Shortage(1, after.available() + 1, after.nextTokenAfter().toNanos(), after, since, retryAt(since))
                : null;
    }

    /** Records a request of which the store took the charge alone. */
    synchronized void taken(long cost, long since) {
        replace(new Lease(cost, 0, since, end(since), null));
        shortage = null;
    }

    /**
     * @param minCost the smallest cost for which the bucket has too few tokens
     * @param waitNanos the time from the request until it has them
     * @param bucket the bucket after the request
     */
    synchronized void lacks(long minCost, long waitNanos, BucketSnapshot bucket, long since) {
        shortage = new Shortage(minCost, minCost, waitNanos, bucket, since, retryAt(since));
    }

    /** Returns when the backend is called again after a request that was granted less than it was for. */
    private long retryAt(long since) {
        return since + pauseNanos;
    }

    private long end(long since) {
        return since + (long) (lease.toNanos() * VALID_PART);
    }

    /** Keeps the latest lease that has tokens beside a new one. */
    private void replace(Lease next) {
        usedBefore = used();
        usedSince = current.since;
        Grant grant = next.grant;
        Lease kept = current.get() > 0 || previous.get() == 0 ? current : previous;
        Lease other = kept == current ? previous : current;
        other.end();
        if (kept.grant != null && grant != null && hasEnded(kept.grant, grant)) {
            kept.end();
        }
        previous = kept;
        carried = kept.get();
        current = next;
    }

    /** Returns whether a lease has ended by the backend's clock: the clock of a frozen machine may have stood still. */
    private boolean hasEnded(Grant before, Grant after) {
        return after.micros() - before.micros() >= lease.toNanos() / 1_000;
    }

    /** Drops the leased tokens, also those of a request under way. They come back to the remote bucket with time. */
    synchronized void drop() {
        previous.end();
        current.end();
        dropped = request.get() != null;
    }

    long tokens(long now) {
        Lease older = previous;
        Lease latest = current;
        return (latest.isValid(now) ? latest.get() : 0) + (older != latest && older.isValid(now) ? older.get() : 0);
    }

    /**
     * The remote bucket at the last request, which had too few tokens. Until a moment, calls are denied without a call of
     * the backend.
     *
     * @param minCost the smallest cost that is denied
     * @param lacking a number of tokens that the bucket doesn't have
     * @param waitNanos the time from the request until it has them
     */
    private record Shortage(long minCost, long lacking, long waitNanos, BucketSnapshot bucket, long since, long until) {

        boolean isValid(long now) {
            return now - until < 0;
        }

        /** Returns a denial until the bucket has the tokens, or until the backend is called again if it has them. */
        Answer denial(Charge charge, long now) {
            long passed = now - since;
            long retry = Math.max(nanosUntil(charge.cost(), charge.spec()) - passed, until - now);
            long available = Math.min(bucket.available(), charge.cost() - 1);
            return Answer.denied(charge, Outcome.DENIED, later(bucket, available, passed), Duration.ofNanos(retry));
        }

        /** Returns the nanoseconds from the request until the bucket has the tokens; for interval refill at most. */
        private long nanosUntil(long tokens, BucketSpec spec) {
            if (tokens <= lacking) {
                return tokens < lacking ? 0 : waitNanos;
            }
            return waitNanos + spec.withCapacity(tokens - lacking).timeToFull().toNanos();
        }
    }

    /** Returns a bucket with so many tokens, after some nanoseconds. */
    private static BucketSnapshot later(BucketSnapshot bucket, long available, long passed) {
        return new BucketSnapshot(
                bucket.capacity(),
                bucket.rate(),
                available,
                remaining(bucket.nextTokenAfter(), passed),
                remaining(bucket.resetAfter(), passed));
    }

    private static Duration remaining(Duration wait, long passed) {
        return wait.isZero() ? wait : Duration.ofNanos(Math.max(wait.toNanos() - passed, 1));
    }

    /** Tokens taken ahead of their use. The value is the number of tokens that are left. */
    static final class Lease extends AtomicLong {

        private static final long serialVersionUID = 1;

        private final transient long tokens;
        private final transient long since;
        private final transient @Nullable Grant grant;
        private transient volatile long until;

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

        /** Ends this lease: its tokens, and those that are returned later, are not used. */
        void end() {
            until = since;
            set(0);
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

        long takeUpTo(long tokens, long now) {
            long left = get();
            while (left > 0 && tokens > 0 && isValid(now)) {
                long taken = Math.min(left, tokens);
                if (compareAndSet(left, left - taken)) {
                    return taken;
                }
                left = get();
            }
            return 0;
        }

        Answer answer(Charge charge, long now) {
            BucketSnapshot bucket = Objects.requireNonNull(grant).bucket();
            BucketSnapshot later = later(bucket, bucket.available() + get(), now - since);
            return Answer.allowed(charge, later, Duration.ZERO).withReceipt(this);
        }

        Object receipt(long cost) {
            return Objects.requireNonNull(grant).receipts().apply(cost);
        }
    }
}
