package io.ratelimit;

import org.jspecify.annotations.Nullable;

/**
 * The promises to waiting calls that a bucket's full-again moment alone doesn't show. In the ticks of one spec.
 *
 * @param promised the tick of the last promise when tokens were given back during a debt, or were owed
 * @param owedTo the full-again moment after tokens were owed: as long as the bucket has this moment, it shows more than
 *     was promised; {@link BucketState#CLOSED}, which is no moment, if it shows the last promise
 * @param origin the bucket's state before it was converted from another spec; null if it wasn't
 * @param fastest the fastest spec that the bucket had before this one; null if it had none
 * @param cut the tokens by which the bucket's capacity fell, over all its changes
 * @param larger the largest capacity that the bucket had before; 0 if it is no larger than the present one
 * @param bucket the bucket whose states are converted to others; null if it never was
 */
record Backlog(
        long promised,
        @Nullable BucketConversion origin,
        @Nullable BucketSpec fastest,
        long cut,
        long larger,
        long owedTo,
        @Nullable ConvertedBucket bucket) {
    /*
     * How many tokens may come back. The simplest answer is: all that were taken, until the bucket is full. It is wrong
     * in two cases.
     *
     * First, while calls wait. A waiting call has taken tokens ahead, and its turn is a promise. The promise holds on
     * one condition: calls that take earlier find the tokens gone. At 1/s and empty, A takes 5 ahead and then B 3, so B
     * is promised the eighth second. If all of A's 5 came back, a later call could take them at once, and B's tokens
     * would not be there in time. Only what exceeds the later promises comes back: A returns 2. If B had cancelled
     * before, A would return 5. (This is CancelAt of Go's x/time/rate.) After a return the full-again moment no longer
     * shows how far the last promise reaches. That promise is kept here, and it only moves forward.
     *
     * Second, after time has passed. At 1/s and a capacity of 10, A takes all 10; ten seconds later the bucket is full
     * again. If A's 10 came back after another call had taken 10, there would be 10 tokens too many. The notion that
     * mends it: a take owns a stretch of the time line. First comes what was missing before the take, then its own
     * price. The part of the price that time has brought back already isn't returned. Returns of earlier takes pull the
     * stretch nearer. No record shows which returns are of earlier takes, so every return since the take counts. That
     * makes the result smaller, never larger, by at most what time soon brings. And a price shrinks no faster than time
     * passes after its tokens are due.
     *
     * Why both are enough. For a moment D let G(D) be what is due from D on, less what was given back of it. The
     * invariant is G(D) <= fullAt - D, so the bucket brings at least what it promised. Taking adds the same to both
     * sides. A return of c reduces both where D is not after its own due moment d. For a later D it needs room: G(D) is
     * less than G(d) by at least the price, so there is room for the price less the way from d to D. What was missing
     * before the take and wasn't given back since is room as well, because earlier takes are no part of G(D). During a
     * debt D runs up to the last promise, and only the first kind of room counts. If a part of the price is kept, the
     * whole price still is room: the kept part comes first on the time line, and the rest is returned.
     *
     * If nothing was taken since a take, all of its price comes back: the bucket is then as if the call hadn't been made,
     * and returns since then were no larger for it. The receipt shows this: the full-again moment is still the one after
     * the take, less what was given back since.
     *
     * Tokens that are owed, because a call cost more than its estimate, push the full-again moment away like a waiting
     * call does, but no call waits for that moment. The last promise is unchanged, and the invariant gains room.
     */

    /** The backlog of a bucket whose full-again moment shows every promise. */
    static final Backlog NONE = new Backlog(0, null, null, 0, 0, BucketState.CLOSED, null);

    /**
     * Returns the part of a price that may be given back.
     *
     * @param kept the other part of the price, which is not to be given back
     * @param due the tick at which the tokens were due
     * @param before the ticks missing before the take, less those given back since; below zero counts as zero
     * @param until now, or the last promise if that is later
     */
    static long returnable(long price, long kept, long due, long before, long until) {
        long behind = until - due;
        return behind < 0 ? 0 : Math.min(Math.max(price + kept + Math.max(before, 0) - behind, 0), price);
    }

    /**
     * Returns the tick of the last promise: the one that the full-again moment shows, unless this backlog has a later
     * one or the moment is due to owed tokens.
     */
    long lastPromise(long fullAt, long full) {
        long shown = fullAt - full;
        return !owes(fullAt) && (this == NONE || shown - promised >= 0) ? shown : promised;
    }

    /** Returns whether a bucket with this full-again moment owes tokens beyond its last promise. */
    boolean owes(long fullAt) {
        return owedTo != BucketState.CLOSED && owedTo == fullAt;
    }

    Backlog with(BucketConversion origin) {
        return new Backlog(promised, origin, fastest, cut, larger, owedTo, bucket);
    }

    Backlog after(
            BucketSpec before,
            BucketSpec present,
            long promised,
            @Nullable BucketConversion origin,
            long cut,
            long owedTo) {
        long largest = Math.max(larger, before.capacity());
        long stillLarger = largest > present.capacity() ? largest : 0;
        return new Backlog(promised, origin, fastestWith(before), cut, stillLarger, owedTo, bucket);
    }

    private BucketSpec fastestWith(BucketSpec present) {
        return fastest == null || perNano(present) > perNano(fastest) ? present : fastest;
    }

    private static double perNano(BucketSpec spec) {
        return (double) spec.rate().tokens() / spec.rate().period().toNanos();
    }

    Backlog identified() {
        return bucket == null
                ? new Backlog(promised, origin, fastest, cut, larger, owedTo, new ConvertedBucket())
                : this;
    }

    Backlog copied() {
        return bucket == null ? this : new Backlog(promised, origin, fastest, cut, larger, owedTo, bucket.copy());
    }

    /** Like {@link #identified}, for a state that stays in use and whose full-again moment shows this last promise. */
    Backlog identifiedAt(long shown) {
        return this == NONE ? identified().promisedUntil(shown) : identified();
    }

    /** Returns this backlog with all its ticks earlier; without the state before a conversion, which has other ticks. */
    Backlog movedBack(long ticks) {
        long owed = owedTo == BucketState.CLOSED ? owedTo : owedTo - ticks;
        return this == NONE ? this : new Backlog(promised - ticks, null, fastest, cut, larger, owed, bucket);
    }

    /** Returns this backlog without the state before a conversion: an origin needs no origin of its own. */
    Backlog withoutOrigin() {
        return origin == null ? this : new Backlog(promised, null, fastest, cut, larger, owedTo, bucket);
    }

    /** Returns the backlog after tokens were given back, while later calls have promises up to this tick. */
    Backlog promisedUntil(long lastPromise) {
        return owing(lastPromise, BucketState.CLOSED);
    }

    /** Returns the backlog with this last promise, of a bucket whose full-again moment is due to owed tokens. */
    Backlog owing(long lastPromise, long fullAt) {
        return new Backlog(lastPromise, null, fastest, cut, larger, fullAt, bucket);
    }
}
