package io.ratelimit;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** The level of one bucket under one spec: all that is kept for a key. Thread-safe and lock-free. */
final class Level {
    /*
     * Why one long is enough. The plain way keeps a count and the time of the last refill, and has to write both at
     * once, round the fraction of a token somewhere, and cap the count. But all of it follows from one moment: when the
     * bucket will be full again. Until then it is short of the tokens that the remaining time would bring; after that
     * it is simply full. Taking pushes the moment away, by the time the tokens need to come back. Time brings it closer
     * by itself: nothing to refill, no timer, an idle bucket costs nothing. Giving back pulls it closer and cannot
     * overfill, since any moment in the past means "full". (The virtual scheduling form of GCRA, ITU-T I.371, told for
     * a bucket.)
     *
     * At 10/s and a capacity of 5 an empty bucket is full in 500 ms; one token is 100 ms of that. A take of 2 when it
     * is full in 400 ms would make that 600 ms, more than an empty bucket needs, so 100 ms are missing: that is both
     * the answer "no" and the time to wait.
     *
     * The unit is chosen so that a clock step and a token are whole numbers of it (Ticks): counting rounds nothing.
     * Threads race on one compare-and-set; the loser looks again. The number publishes nothing but itself.
     *
     * A level belongs to one spec. When another comes, or its key is forgotten, it is closed for ever and whoever still
     * holds it looks again: so no token is taken where nobody will miss it.
     */

    /** The answer of a level that was closed: look again for the one that counts now. */
    static final long CLOSED = Long.MIN_VALUE;

    /** The answer to a cost above the capacity. */
    static final long NEVER_FITS = Long.MIN_VALUE + 1;

    private static final VarHandle FULL_AT;

    static {
        try {
            FULL_AT = MethodHandles.lookup().findVarHandle(Level.class, "fullAt", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final Ticks ticks;
    private volatile long fullAt;

    /** When whoever keeps this level last wrote it to its map, by its own clock; a lost update only writes it again. */
    long renewedAt;

    Level(Ticks ticks, long nanos) {
        this(ticks, nanos, 0);
    }

    /** A level that is so many ticks short of full. */
    Level(Ticks ticks, long nanos, long missing) {
        this.ticks = ticks;
        this.fullAt = ticks.at(nanos) + missing;
    }

    /**
     * Takes the tokens and returns the ticks that the bucket is then missing, or takes none and returns less than
     * zero: the ticks that are missing for it, negated, or {@link #NEVER_FITS}, or {@link #CLOSED}.
     */
    long take(long cost, long nanos) {
        return take(cost, nanos, fullAt);
    }

    private long take(long cost, long nanos, long lastSeen) {
        if (!ticks.fits(cost)) {
            return NEVER_FITS;
        }
        long now = ticks.at(nanos);
        long price = ticks.of(cost);
        long seen = lastSeen;
        while (seen != CLOSED) {
            long left = left(seen, now, price);
            if (left < 0) {
                return left;
            }
            long missing = ticks.full() - left;
            if (FULL_AT.weakCompareAndSet(this, seen, now + missing)) {
                return missing;
            }
            seen = fullAt;
        }
        return CLOSED;
    }

    /** Like {@link #take(long, long)} at the present, for whom a yes or a no is enough. */
    boolean tryTake(long cost, TimeSource time) {
        while (true) {
            long before = fullAt;
            long nanos = time.nanoTime();
            long taken = take(cost, nanos, before);
            if (taken >= 0 || taken == NEVER_FITS || lacked(before, cost, nanos)) {
                return taken >= 0;
            }
        }
    }

    /** Takes at the present and says what follows. */
    Decision decide(long cost, TimeSource time) {
        while (true) {
            long before = fullAt;
            long nanos = time.nanoTime();
            long taken = take(cost, nanos, before);
            if (taken >= 0 || taken == NEVER_FITS || lacked(before, cost, nanos)) {
                return Decision.of(this, cost, taken, nanos);
            }
        }
    }

    /**
     * Whether the tokens weren't there at some moment of a call that read {@link #fullAt} before the clock. Between the
     * reading of the clock and the taking others may have taken at later moments, and to the older clock the bucket
     * looks emptier than it ever was. So a no is only believed where what was there before says it too.
     */
    boolean lacked(long before, long cost, long nanos) {
        return before != CLOSED && left(before, ticks.at(nanos), ticks.of(cost)) < 0;
    }

    /** When the bucket is full again, in ticks, or {@link #CLOSED}. */
    long fullAt() {
        return fullAt;
    }

    /** What {@link #take(long, long)} would say, but nothing is taken: the ticks now missing, or less than zero. */
    long peek(long cost, long nanos) {
        if (!ticks.fits(cost)) {
            return NEVER_FITS;
        }
        long seen = fullAt;
        long now = ticks.at(nanos);
        long left = left(seen, now, ticks.of(cost));
        return seen == CLOSED ? CLOSED : left < 0 ? left : missing(seen, now);
    }

    /** The ticks left beyond the price; if less than zero, those it is short of. */
    private long left(long seen, long now, long price) {
        return ticks.full() - missing(seen, now) - price;
    }

    /** Puts tokens back, at most until the bucket is full; false if this level was closed. */
    boolean giveBack(long tokens, long nanos) {
        long now = ticks.at(nanos);
        long price = ticks.of(tokens);
        while (true) {
            long seen = fullAt;
            if (seen == CLOSED || seen - now <= 0) {
                return seen != CLOSED;
            }
            if (FULL_AT.weakCompareAndSet(this, seen, now + Math.max(seen - now - price, 0))) {
                return true;
            }
        }
    }

    /** The ticks that are missing for a full bucket, or {@link #CLOSED}. */
    long missing(long nanos) {
        long seen = fullAt;
        return seen == CLOSED ? CLOSED : missing(seen, ticks.at(nanos));
    }

    /** No more than all: to a clock that was read before others took at later moments, it could look like more. */
    private long missing(long seen, long now) {
        return Math.min(Math.max(seen - now, 0), ticks.full());
    }

    /** Closes this level, which must be open, and returns one of another spec that holds the tokens that were here. */
    Level reopen(Ticks other, long nanos) {
        long seen = (long) FULL_AT.getAndSet(this, CLOSED);
        // Others may have taken at later moments: no earlier than theirs, or the time between would count twice.
        long then = nanos + ticks.nanosUntil(seen - ticks.at(nanos) - ticks.full(), nanos);
        return new Level(other, then, other.missingFrom(ticks, missing(seen, ticks.at(then))));
    }

    /** Closes this level: nobody takes from it any more. */
    void close() {
        fullAt = CLOSED;
    }

    Ticks ticks() {
        return ticks;
    }
}
