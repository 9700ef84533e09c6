package io.ratelimit;

import io.ratelimit.Take.Receipt;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/** The state of one bucket under one spec: all that is kept for a key. Thread-safe; taking is lock-free. */
final class BucketState {
    /*
     * Why one long is enough. The simplest bucket keeps a count and the time of the last refill. It has to write both
     * at once, round the fraction of a token somewhere, and cap the count. But all of this follows from one moment:
     * when the bucket will be full again. Before that moment the bucket is short of the tokens that the remaining time
     * brings. After it the bucket is full. Taking pushes the moment away by the time that the tokens need to come back.
     * Time brings it nearer without any work: there is no refill and no timer, and an idle bucket costs nothing. Giving
     * back pulls the moment nearer and can't overfill, because any moment in the past means "full". (This is the
     * virtual scheduling form of GCRA, ITU-T I.371, for a bucket.)
     *
     * At 10/s and a capacity of 5 an empty bucket is full in 500 ms, and one token is worth 100 ms. A take of 2 when
     * the bucket is full in 400 ms would make that 600 ms, 100 ms more than an empty bucket needs. These 100 ms are
     * both the denial and the time to wait.
     *
     * Moments are counted in ticks (TickScale), so that no operation rounds. Threads race on one compare-and-set; a
     * thread that loses, or finds that another one took while it read the clock, pauses for some microseconds and
     * continues from the present value. The number publishes nothing but itself.
     *
     * A call that may wait takes tokens ahead: the bucket is then full later than an empty one would be. The excess is
     * the bucket's debt, and also the wait (Backlog). A state that was replaced, by one of another spec or by none because
     * its key is forgotten, stays closed. So no token is taken from a state that no later call sees.
     */

    /** The result of an operation on a closed state: the caller must look up the bucket again. */
    static final long CLOSED = Long.MIN_VALUE;

    private static final int SPINS = 32;

    private static final VarHandle FULL_AT;
    private static final VarHandle RETURNED;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            FULL_AT = lookup.findVarHandle(BucketState.class, "fullAt", long.class);
            RETURNED = lookup.findVarHandle(BucketState.class, "returned", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final TickScale scale;
    private volatile long fullAt;
    private volatile Backlog backlog;

    /**
     * The ticks given back so far; the count may wrap around. Written after {@link #fullAt} was pulled nearer, by the
     * thread that holds this state's lock.
     */
    private volatile long returned;

    /** The time of the last write to the owner's map, in the owner's unit. A lost update only causes another write. */
    int renewedAt;

    /** The hash of the key, written before the state gets into a {@link BucketIndex}. */
    long keyHash;

    BucketState(TickScale scale, long nanos) {
        this(scale, nanos, 0);
    }

    /** Creates a state that is this many ticks short of full. */
    BucketState(TickScale scale, long nanos, long missing) {
        this(scale, scale.at(nanos) + missing, 0, Backlog.NONE);
    }

    BucketState(TickScale scale, long fullAt, long returned, Backlog backlog) {
        this.scale = scale;
        this.fullAt = fullAt;
        this.returned = returned;
        this.backlog = backlog;
    }

    /** Takes the tokens, ahead of time if they come within the longest wait, or takes none: see {@link Take}. */
    long take(long cost, long nanos, long maxWaitNanos) {
        return take(cost, 0, nanos, maxWaitNanos);
    }

    /** Like {@link #take(long, long, long)}, of tokens beyond those to leave. A denial is that of a take of both. */
    long take(long cost, long leave, long nanos, long maxWaitNanos) {
        if (!scale.fits(cost, leave)) {
            return Take.NEVER_FITS;
        }
        long now = scale.at(nanos);
        long price = scale.price(cost);
        long maxMissing = scale.full() - (leave == 0 ? price : scale.price(cost + leave));
        for (long seen = fullAt; seen != CLOSED; seen = fullAt) {
            long missing = missing(seen, now);
            if (missing > maxMissing && !comesWithin(missing - maxMissing, nanos, maxWaitNanos)) {
                return maxMissing - missing;
            }
            if (FULL_AT.compareAndSet(this, seen, now + missing + price)) {
                return missing + price;
            }
            backOff();
        }
        return CLOSED;
    }

    /** Leaves the cache line to another thread for some of its takes, instead of fetching it at once. */
    private static void backOff() {
        for (int i = 0; i < SPINS; i++) {
            Thread.onSpinWait();
            Thread.onSpinWait(); // Lincheck takes a loop of more than 50 rounds for a livelock
        }
    }

    /** Backs off if another thread has taken since a look: without a pause, each take would fetch the cache line anew. */
    private void backOffIfChanged(long before) {
        if (fullAt != before) {
            backOff();
        }
    }

    private boolean comesWithin(long missing, long nanos, long maxWaitNanos) {
        return maxWaitNanos > 0 && scale.nanosUntil(missing, nanos) <= maxWaitNanos;
    }

    /** Like {@link #take(long, long, long)} now; a result of zero or more only means that the tokens were taken. */
    long tryTake(long cost, TimeSource time) {
        while (true) {
            long before = fullAt;
            long nanos = time.nanoTime();
            backOffIfChanged(before);
            long taken = take(cost, nanos, 0);
            if (Take.isFinal(taken) || wasShort(before, cost, nanos, 0)) {
                return taken;
            }
        }
    }

    /** Takes now, or ahead of time if the call may wait. Returns the result; null if this state was closed. */
    <T> @Nullable T take(long cost, long maxWaitNanos, TimeSource time, Take.Result<T> result) {
        while (true) {
            long returnedBefore = returned;
            long before = fullAt;
            long nanos = time.nanoTime();
            backOffIfChanged(before);
            long taken = take(cost, nanos, maxWaitNanos);
            if (Take.isFinal(taken) || wasShort(before, cost, nanos, maxWaitNanos)) {
                return taken == CLOSED ? null : result.create(this, cost, taken, nanos, maxWaitNanos, returnedBefore);
            }
        }
    }

    /** Returns the ticks given back so far. Read it before a take whose {@link Receipt} is needed. */
    long returned() {
        return returned;
    }

    /**
     * Returns whether the tokens were really missing at some moment of a call that read {@link #fullAt} before the
     * clock. Between the clock and the take, other calls may have taken at later moments. By the older clock the bucket
     * then looks emptier than it ever was. So a denial only stands if the earlier state denies too.
     */
    boolean wasShort(long before, long cost, long nanos, long maxWaitNanos) {
        long left = before == CLOSED ? 0 : left(before, scale.at(nanos), scale.price(cost));
        return left < 0 && !comesWithin(-left, nanos, maxWaitNanos);
    }

    Backlog backlog() {
        return backlog;
    }

    /** Returns the tick at which the bucket is full again, or {@link #CLOSED}. */
    long fullAt() {
        return fullAt;
    }

    /**
     * Returns the result that {@link #take(long, long, long)} would have, and takes nothing: the ticks missing now,
     * including the debt, or less than zero.
     */
    long peek(long cost, long nanos, long maxWaitNanos) {
        if (!scale.fits(cost)) {
            return Take.NEVER_FITS;
        }
        long seen = fullAt;
        long now = scale.at(nanos);
        long left = left(seen, now, scale.price(cost));
        return seen == CLOSED
                ? CLOSED
                : left < 0 && !comesWithin(-left, nanos, maxWaitNanos) ? left : missing(seen, now);
    }

    private long left(long seen, long now, long price) {
        return scale.full() - price - missing(seen, now);
    }

    /**
     * Puts tokens back.
     *
     * <ul>
     *   <li>Without a receipt: at most until the bucket is full, and none while calls wait for tokens.
     *   <li>With the receipt of a take from this state: the tokens that time hasn't brought back yet. While calls wait,
     *       no more than was taken beyond the promises made after the take; all if no call has taken tokens since.
     *   <li>With the receipt of a state that this one replaced: the tokens, reduced by what the fastest spec since then
     *       can have brought and by the tokens by which the capacity fell; none while calls wait.
     * </ul>
     *
     * @param kept the tokens of the same take that the call keeps
     * @param leased the ticks of leased tokens, which the bucket is still missing afterwards
     * @return the ticks that came back, or {@link #CLOSED}
     */
    long giveBack(long tokens, long kept, @Nullable Receipt receipt, long leased, TimeSource time) {
        long price = scale.price(tokens);
        if (receipt == null || receipt.state() == this) {
            return giveBackPrice(price, scale.price(kept), receipt, leased, time);
        }
        long unpaid =
                Math.max(scale.price(tokens + kept) - BucketConversion.maxGain(receipt, this, time.nanoTime()), 0);
        return giveBackPrice(Math.min(unpaid, price), 0, null, leased, time);
    }

    /**
     * Takes tokens even if the bucket has too few: the bucket is then in debt until time has brought them. Waiting
     * calls keep their turn. Tokens that would need more than 365 days of debt aren't taken.
     *
     * @param shared whether the bucket is that of several keys: it is emptied at most, since its debt would be others' too
     * @return the ticks that the bucket is then missing, or {@link #CLOSED}
     */
    synchronized long owe(long tokens, boolean shared, TimeSource time) {
        while (true) {
            long seen = fullAt;
            long now = scale.at(time.nanoTime()); // after fullAt, as in giveBackPrice
            if (seen == CLOSED) {
                return CLOSED;
            }
            long missing = missing(seen, now);
            long after = scale.missingAfterDebt(missing, tokens);
            after = shared ? Math.min(after, Math.max(missing, scale.full())) : after;
            Backlog owing = after > scale.full() ? backlog.owing(lastPromise(seen), now + after) : backlog;
            if (move(seen, now + after, owing)) {
                return after;
            }
        }
    }

    /** Returns the nanoseconds of debt that the bucket would have after so many tokens were {@linkplain #owe owed}. */
    long debtNanos(long tokens, long nanos) {
        long seen = fullAt;
        long after = seen == CLOSED ? 0 : scale.missingAfterDebt(missing(seen, scale.at(nanos)), tokens);
        return scale.nanosUntil(after - scale.full(), nanos);
    }

    private synchronized long giveBackPrice(
            long price, long kept, @Nullable Receipt receipt, long leased, TimeSource time) {
        while (true) {
            long seen = fullAt;
            // The clock is read after fullAt: by an older clock, takes at later moments would look like a debt.
            long now = scale.at(time.nanoTime());
            if (seen == CLOSED || seen - now <= 0) {
                return seen == CLOSED ? CLOSED : 0;
            }
            long last = lastPromise(seen);
            boolean inDebt = last - now > 0;
            long back = price;
            if (receipt == null) {
                back = inDebt ? 0 : price;
            } else if (seen - receipt.due() - (receipt.before() - returned)
                    != price) { // calls took since, or keep a part
                back = Backlog.returnable(
                        price, kept, receipt.due(), inDebt ? 0 : receipt.before() - returned, inDebt ? last : now);
            }
            long pulled = Math.min(back, seen - now - leased);
            if (pulled <= 0 || pullNearer(seen, pulled, inDebt && back < price + kept ? last : null)) {
                return Math.max(pulled, 0);
            }
        }
    }

    /** Pulls the moment nearer if it is unchanged; a last promise must then be recorded, since it stays. */
    private boolean pullNearer(long seen, long back, @Nullable Long lastPromise) {
        Backlog after = backlog;
        if (after.owes(seen)) {
            after = after.owing(after.promised(), seen - back);
        } else if (lastPromise != null) {
            after = after.promisedUntil(lastPromise);
        }
        boolean moved = move(seen, seen - back, after);
        if (moved) {
            addReturned(back);
        }
        return moved;
    }

    /**
     * Counts ticks, under the lock. A thread without the lock that sees the new count also sees the nearer
     * {@link #fullAt}: the release orders the two writes. A volatile write would also wait for its own visibility.
     */
    private void addReturned(long ticks) {
        RETURNED.setRelease(this, returned + ticks);
    }

    /** Replaces the moment if it is unchanged, and the backlog with it. */
    private boolean move(long seen, long next, Backlog after) {
        Backlog before = backlog;
        if (after == before) {
            return FULL_AT.compareAndSet(this, seen, next);
        }
        backlog = after;
        if (!FULL_AT.compareAndSet(this, seen, next)) {
            backlog = before;
            return false;
        }
        return true;
    }

    private long lastPromise(long seen) {
        return backlog.lastPromise(seen, scale.full());
    }

    /** Returns the ticks missing from a full bucket, or {@link #CLOSED}. */
    long missing(long nanos) {
        long seen = fullAt;
        return seen == CLOSED ? CLOSED : missing(seen, scale.at(nanos));
    }

    static long missing(long seen, long now) {
        long missing = seen - now; // No Math.max: it waits for the clock, and a branch is predicted.
        return missing > 0 ? missing : 0;
    }

    /**
     * Closes this state, which must be open, and returns the one that {@linkplain #replaces replaces} it, made from the
     * tick at which this bucket is full. If that fails, for example since the clock throws, this state is open again.
     */
    synchronized BucketState replace(LongFunction<BucketState> replacement) {
        long seen = (long) FULL_AT.getAndSet(this, CLOSED);
        try {
            backlog = backlog.identifiedAt(seen - scale.full());
            return replacement.apply(seen);
        } catch (RuntimeException | Error failed) {
            fullAt = seen;
            throw failed;
        }
    }

    BucketState copy(long fullAt) {
        return new BucketState(scale, fullAt, 0, backlog.copied());
    }

    /**
     * Takes ticks that are available, for the only thread that writes to this state. Returns the tick at which the bucket is
     * full then.
     */
    long takeTicks(long price, long nanos) {
        long now = scale.at(nanos);
        long after = now + missing(fullAt, now) + price;
        fullAt = after;
        return after;
    }

    /** Puts back ticks that time has not brought back yet, for the only thread that writes to this state. */
    synchronized void giveBackTicks(long price) {
        FULL_AT.getAndAdd(this, -price);
        addReturned(price);
    }

    void close() {
        fullAt = CLOSED;
    }

    /** Closes this state unless it has changed since a look at it. Returns whether it did. */
    boolean closeAt(long seen) {
        return FULL_AT.compareAndSet(this, seen, CLOSED);
    }

    /** Returns whether another state was converted to this one, perhaps by way of others. After a reset none was. */
    boolean replaces(BucketState earlier) {
        ConvertedBucket bucket = backlog.bucket();
        return earlier == this || bucket != null && bucket.isSame(earlier.backlog.bucket());
    }

    boolean isClosed() {
        return fullAt == CLOSED;
    }

    TickScale scale() {
        return scale;
    }
}
