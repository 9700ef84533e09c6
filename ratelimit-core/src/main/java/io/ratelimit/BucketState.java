package io.ratelimit;

import io.ratelimit.Decision.Outcome;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
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
     * the bucket's debt, and also the wait (Backlog). A state that was closed, for another spec or because its key is
     * forgotten, stays closed. So no token is taken from a state that no later call sees.
     */

    /** The result of an operation on a closed state: the caller must look up the bucket again. */
    static final long CLOSED = Long.MIN_VALUE;

    /** The result of a take with a cost above the capacity. */
    static final long NEVER_FITS = Long.MIN_VALUE + 1;

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
        this.scale = scale;
        long now = scale.at(nanos);
        this.fullAt = now + missing;
        this.backlog = Backlog.NONE;
    }

    /** Creates a state that was kept elsewhere. */
    BucketState(TickScale scale, long fullAt, long returned, Backlog backlog) {
        this.scale = scale;
        this.fullAt = fullAt;
        this.returned = returned;
        this.backlog = backlog;
    }

    /** Like {@link #take(long, long, long)}, for a call that doesn't wait. */
    long take(long cost, long nanos) {
        return take(cost, nanos, 0);
    }

    /**
     * Takes the tokens, ahead of time if they come within the longest wait, or takes none.
     *
     * @return if the tokens were taken, the ticks that the bucket is then missing; more than a full bucket's ticks if
     *     it is in debt. Otherwise less than zero: the ticks missing for this cost, negated, or {@link #NEVER_FITS}, or
     *     {@link #CLOSED}
     */
    long take(long cost, long nanos, long maxWaitNanos) {
        if (!scale.fits(cost)) {
            return NEVER_FITS;
        }
        long now = scale.at(nanos);
        long price = scale.price(cost);
        long maxMissing = scale.full() - price;
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

    /**
     * Takes tokens now, for callers that only need to know whether they were taken.
     *
     * @return below zero if they weren't, as from {@link #take(long, long)}; it may be {@link #CLOSED}
     */
    long tryTake(long cost, TimeSource time) {
        while (true) {
            long before = fullAt;
            long nanos = time.nanoTime();
            backOffIfChanged(before);
            long taken = take(cost, nanos, 0);
            if (isFinal(taken) || wasShort(before, cost, nanos, 0)) {
                return taken;
            }
        }
    }

    /** Takes now, or ahead of time if the call may wait. Returns the result; null if this state was closed. */
    <T> @Nullable T take(long cost, long maxWaitNanos, TimeSource time, Result<T> result) {
        while (true) {
            long returnedBefore = returned;
            long before = fullAt;
            long nanos = time.nanoTime();
            backOffIfChanged(before);
            long taken = take(cost, nanos, maxWaitNanos);
            if (isFinal(taken) || wasShort(before, cost, nanos, maxWaitNanos)) {
                return taken == CLOSED ? null : result.create(this, cost, taken, nanos, maxWaitNanos, returnedBefore);
            }
        }
    }

    /** Creates the caller's result of a take. */
    interface Result<T> {
        /**
         * @param taken the result of the take: see {@link BucketState#take(long, long, long)}
         * @param returned the value of {@link BucketState#returned} before the take
         */
        T create(BucketState state, long cost, long taken, long nanos, long maxWaitNanos, long returned);
    }

    /** Returns the ticks given back so far. Read it before a take whose {@link #receipt} is needed. */
    long returned() {
        return returned;
    }

    /**
     * The record of a take, so that its tokens can be given back.
     *
     * @param state the state that the tokens were taken from
     * @param due the tick at which the tokens were due
     * @param before the ticks that the bucket was missing before the take, when its tokens were due, plus the ticks
     *     given back until then
     */
    record Receipt(BucketState state, long due, long before) {

        /** Returns the moment of a take without a wait; reads the clock if its step is coarser than a nanosecond. */
        long takenAt(TimeSource time) {
            return state.scale.nanosAt(due, time);
        }
    }

    /**
     * Returns the receipt of a take.
     *
     * @param taken the result of the take
     * @param returned {@link #returned} as it was before the take; a later value would count too much as given back
     */
    Receipt receipt(long cost, long taken, long nanos, long returned) {
        long due = scale.at(nanos) + Math.max(taken - scale.full(), 0);
        return new Receipt(this, due, Math.min(taken, scale.full()) - scale.price(cost) + returned);
    }

    private static boolean isFinal(long taken) {
        return taken >= 0 || taken == NEVER_FITS || taken == CLOSED;
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
            return NEVER_FITS;
        }
        long seen = fullAt;
        long now = scale.at(nanos);
        long left = left(seen, now, scale.price(cost));
        return seen == CLOSED
                ? CLOSED
                : left < 0 && !comesWithin(-left, nanos, maxWaitNanos) ? left : missing(seen, now);
    }

    /** Returns the ticks left beyond the price; below zero, the ticks that the bucket is short of. */
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
     * @return false if this state was closed
     */
    boolean giveBack(long tokens, @Nullable Receipt receipt, TimeSource time) {
        return giveBack(tokens, 0, receipt, time);
    }

    /** Like {@link #giveBack(long, Receipt, TimeSource)}, for a take of which the call keeps other tokens. */
    boolean giveBack(long tokens, long kept, @Nullable Receipt receipt, TimeSource time) {
        long price = scale.price(tokens);
        if (receipt == null || receipt.state == this) {
            return giveBackPrice(price, scale.price(kept), receipt, time);
        }
        long unpaid = Math.max(scale.price(tokens + kept) - maxGainSince(receipt, time), 0);
        return giveBackPrice(Math.min(unpaid, price), 0, null, time);
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

    /**
     * Returns the nanoseconds for which the bucket would be in debt if so many tokens were {@linkplain #owe owed} now.
     */
    long debtNanos(long tokens, long nanos) {
        long seen = fullAt;
        long after = seen == CLOSED ? 0 : scale.missingAfterDebt(missing(seen, scale.at(nanos)), tokens);
        return scale.nanosUntil(after - scale.full(), nanos);
    }

    /**
     * Returns the most ticks that can have come since the tokens of another state of this bucket were due. If the
     * capacity fell, the bucket is missing that many tokens less.
     */
    private long maxGainSince(Receipt receipt, TimeSource time) {
        TickScale before = receipt.state.scale;
        long nanos = before.nanosSince(receipt.due, time.nanoTime());
        long refill = Math.max(scale.maxRefill(nanos, before.spec()), scale.maxRefill(nanos, scale.spec()));
        Backlog current = backlog;
        if (current.fastest() != null) {
            refill = Math.max(refill, scale.maxRefill(nanos, current.fastest()));
        }
        long tokensCut = Math.max(
                current.cut() - receipt.state.backlog.cut(),
                before.spec().capacity() - scale.spec().capacity());
        long cut = scale.price(Math.max(tokensCut, 0));
        return cut + Math.min(refill, scale.full() - cut);
    }

    private synchronized boolean giveBackPrice(long price, long kept, @Nullable Receipt receipt, TimeSource time) {
        while (true) {
            long seen = fullAt;
            // The clock is read after fullAt: by an older clock, takes at later moments would look like a debt.
            long now = scale.at(time.nanoTime());
            if (seen == CLOSED || seen - now <= 0) {
                return seen != CLOSED;
            }
            long last = lastPromise(seen);
            boolean inDebt = last - now > 0;
            long back = price;
            if (receipt == null) {
                back = inDebt ? 0 : price;
            } else if (seen - receipt.due - (receipt.before - returned) != price) { // calls took since, or keep a part
                back = Backlog.returnable(
                        price, kept, receipt.due, inDebt ? 0 : receipt.before - returned, inDebt ? last : now);
            }
            if (back == 0
                    || pullNearer(seen, Math.min(back, seen - now), inDebt && back < price + kept ? last : null)) {
                return true;
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
        if (!move(seen, seen - back, after)) {
            return false;
        }
        addReturned(back);
        return true;
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

    private static long missing(long seen, long now) {
        long missing = seen - now; // No Math.max: it waits for the clock, and a branch is predicted.
        return missing > 0 ? missing : 0;
    }

    /** Returns the ticks of another spec that its bucket is missing if it replaces this state, or {@link #CLOSED}. */
    long missing(TickScale other, long nanos) {
        long seen = fullAt;
        return seen == CLOSED ? CLOSED : origin(seen).convert(other, nanos).missing;
    }

    /** Like {@link #missing(TickScale, long)}, but with the missing ticks of a state whose clock has no advance. */
    long missingWithoutAdvance(TickScale other, long nanos) {
        long seen = fullAt;
        if (seen == CLOSED) {
            return CLOSED;
        }
        Converted converted = origin(seen).convert(other, nanos);
        return converted.missing + converted.advance;
    }

    private Origin origin(long seen) {
        Backlog current = backlog;
        Origin origin = current.origin();
        return origin != null && origin.convertedTo() == seen
                ? origin
                : new Origin(scale, seen, current.withoutOrigin(), 0);
    }

    /*
     * How a state converts to another spec. The limit of a key was 10/s with a capacity of 5, and its next call comes
     * under 2/s with a capacity of 4. The bucket is full in 250 ms, so it is missing 2.5 of 5 tokens, and has 2.5. These
     * are kept. Under the new spec the bucket is missing 1.5 of 4 tokens, and a token takes 500 ms: it is full in 750 ms.
     * With 4.5 tokens it would be cut to 4 tokens, and be full. Three things make this less simple.
     *
     * Promises. If calls wait, the old spec counts until the last of them is due, so each waits as long as it was told.
     * The tokens of that moment are kept, and what the new rate brings until that moment is missing in addition.
     *
     * Fractions. 2.5 tokens may be no whole number of the new ticks; the rest is cut off. If calls under two specs took
     * turns and all were denied, such a bucket would never fill. So the state before the conversion is kept, as the
     * origin, until a call takes tokens. The next conversion starts from the origin.
     *
     * Batches. With interval refill the time since the last batch has earned a part of the next one, and this part is
     * taken off that batch. The clock of the new state is ahead by so many ticks until the batch comes: this is the
     * advance, explained at TickScale.
     */

    /**
     * A state before its conversion to another spec. If every call on the converted state was denied, the next
     * conversion starts from the origin instead. So the fraction of a token that the first conversion cut off isn't
     * lost.
     *
     * @param convertedTo the first {@link #fullAt} of the converted state
     */
    record Origin(TickScale scale, long fullAt, Backlog backlog, long convertedTo) {

        /**
         * The old spec counts until the last promise; the tokens that are there then are kept. But tokens that were
         * given back come at the old rate until then. A slower spec must not grant them earlier, so it counts from the
         * end of the debt, if that is less. And the batch that ends the debt may leave tokens over, which aren't there
         * before: until then at least a full bucket is missing.
         */
        private Converted convert(TickScale other, long nanos) {
            if (other.base() == scale.base()) {
                return new Converted(BucketState.missing(fullAt, scale.at(nanos)), 0, nanos);
            }
            long last = lastPromiseNanos(nanos);
            long end = nanosOrLater(fullAt - scale.full(), nanos);
            long missing = other.convertMissing(scale, missingAt(last), last) + other.at(last);
            long worth = other.worthMissing(scale, missingAt(last), last) + other.at(last);
            if (end < last) {
                long atEnd = other.worthMissing(scale, missingAt(end), end) + other.at(end);
                missing = Math.max(missing, atEnd);
                worth = Math.max(worth, atEnd);
            }
            long endOfPromised = Math.min(end, last);
            if (endOfPromised > nanos) {
                missing = Math.max(missing, other.full() + other.at(endOfPromised - 1));
                worth = Math.max(worth, missing);
            }
            return new Converted(missing - other.at(nanos), worth - missing, last);
        }

        boolean owes() {
            return backlog.owes(fullAt);
        }

        private long missingAt(long nanos) {
            return BucketState.missing(fullAt, scale.at(nanos));
        }

        /** Returns the moment of the last promise, or now if that is later. */
        private long lastPromiseNanos(long nanos) {
            return nanosOrLater(backlog.lastPromise(fullAt, scale.full()), nanos);
        }

        private long nanosOrLater(long tick, long nanos) {
            return nanos + scale.nanosUntil(tick - scale.at(nanos), nanos);
        }
    }

    /**
     * The missing ticks under another spec.
     *
     * @param advance the ticks by which the clock is ahead until the step after a moment: see {@link TickScale}
     */
    private record Converted(long missing, long advance, long advancedFrom) {}

    /**
     * Closes this state, which must be open, and returns a state of another spec with the same tokens. Waiting calls
     * keep their turn.
     */
    synchronized BucketState convertTo(TickScale other, TimeSource time) {
        Origin origin = origin((long) FULL_AT.getAndSet(this, CLOSED));
        backlog = backlog.identified();
        long nanos = time.nanoTime(); // not before closing: takes of other threads since then would look like a debt
        if (other.base() == origin.scale.base()) {
            BucketState restored = new BucketState(origin.scale, nanos, origin.missingAt(nanos));
            boolean owes = origin.owes();
            long lastPromise =
                    owes ? origin.backlog.promised() : origin.backlog.lastPromise(restored.fullAt, other.full());
            restored.backlog = new Backlog(
                    lastPromise, null, fastest(), backlog.cut(), owes ? restored.fullAt : CLOSED, backlog.bucket());
            return restored;
        }
        Converted result = origin.convert(other, nanos);
        TickScale advanced = other.advanced(result.advance, result.advancedFrom);
        BucketState converted = new BucketState(advanced, nanos, result.missing);
        long last = origin.lastPromiseNanos(nanos);
        // Without a promise the current step of the other clock counts: the next step would look like a debt.
        long promised = last == nanos ? advanced.at(nanos) : advanced.atOrAfter(last);
        boolean fraction = other.cutsFraction(origin.scale, origin.fullAt - origin.scale.at(nanos), nanos);
        Origin kept = fraction ? new Origin(origin.scale, origin.fullAt, origin.backlog, converted.fullAt) : null;
        long cut =
                backlog.cut() + Math.max(scale.spec().capacity() - other.spec().capacity(), 0);
        converted.backlog = new Backlog(
                promised, kept, fastest(), cut, origin.owes() ? converted.fullAt : CLOSED, backlog.bucket());
        return converted;
    }

    /** Closes this state, which must be open, and returns an equal one that {@linkplain #replaces replaces} it. */
    synchronized BucketState copy() {
        BucketState copy = new BucketState(scale, 0);
        copy.fullAt = (long) FULL_AT.getAndSet(this, CLOSED);
        backlog = backlog.identifiedAt(copy.fullAt - scale.full());
        copy.backlog = backlog;
        return copy;
    }

    /** Returns a new state, short of so many ticks, to which tokens that were taken from this copied state come back. */
    BucketState inherited(TickScale other, long nanos, long missing) {
        BucketState inherited = new BucketState(other, nanos, missing);
        long cut =
                backlog.cut() + Math.max(scale.spec().capacity() - other.spec().capacity(), 0);
        inherited.backlog =
                new Backlog(inherited.fullAt - other.full(), null, fastest(), cut, CLOSED, backlog.bucket());
        return inherited;
    }

    /** Returns the fastest spec that the bucket has had, this one included. */
    private BucketSpec fastest() {
        BucketSpec fastest = backlog.fastest();
        return fastest == null || perNano(scale.spec()) > perNano(fastest) ? scale.spec() : fastest;
    }

    private static double perNano(BucketSpec spec) {
        return (double) spec.rate().tokens() / spec.rate().period().toNanos();
    }

    /**
     * Takes ticks that are available, for the only thread that writes to this state.
     *
     * @return the tick at which the bucket is full then
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

    /** Returns the ticks missing after a take with this result. */
    long missingAfter(long taken, long cost, long nanos) {
        if (taken >= 0) {
            return taken;
        }
        return taken == NEVER_FITS ? missing(nanos) : scale.full() - scale.price(cost) - taken;
    }

    /** Returns the outcome of a take with this result, for a call with this longest wait. */
    Outcome outcome(long taken, long maxWaitNanos) {
        if (taken >= 0) {
            return Outcome.ALLOWED;
        }
        return taken == NEVER_FITS ? Outcome.NEVER_FITS : maxWaitNanos > 0 ? Outcome.TOO_LONG : Outcome.DENIED;
    }

    /** Returns the time after which a take with this result could succeed; zero if it did, or never can. */
    long retryNanos(long taken, long nanos) {
        return taken < 0 && taken != NEVER_FITS ? scale.nanosUntil(-taken, nanos) : 0;
    }

    /** Returns the time until the tokens of a take with this result are due. */
    long waitNanos(long taken, long nanos) {
        return taken < 0 ? 0 : scale.nanosUntil(taken - scale.full(), nanos);
    }

    /** Closes this state: no thread takes from it any more. */
    void close() {
        fullAt = CLOSED;
    }

    /** Returns whether another state was converted to this one, perhaps by way of others. After a reset none was. */
    boolean replaces(BucketState earlier) {
        Object bucket = backlog.bucket();
        return earlier == this || bucket != null && bucket == earlier.backlog.bucket();
    }

    boolean isClosed() {
        return fullAt == CLOSED;
    }

    TickScale scale() {
        return scale;
    }
}
