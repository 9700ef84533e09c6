package io.ratelimit;

import io.ratelimit.Decision.Answer;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/** The level of one bucket under one spec: all that is kept for a key. Thread-safe; taking is lock-free. */
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
     * Threads race on one compare-and-exchange; the loser goes on from what the winner left. The number publishes nothing
     * but itself.
     *
     * Who may wait takes tokens ahead: the bucket is then full later than an empty one would be. What is beyond is its
     * debt, and also the wait (Line says what that means for who gives back).
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

    /** What {@link #fullAt} doesn't show of the line. */
    private volatile Line line;

    /** When whoever keeps this level last wrote it to its map, in its own measure; a lost update only writes it again. */
    int renewedAt;

    Level(Ticks ticks, long nanos) {
        this(ticks, nanos, 0);
    }

    /** A level that is so many ticks short of full. */
    Level(Ticks ticks, long nanos, long missing) {
        this.ticks = ticks;
        long now = ticks.at(nanos);
        this.fullAt = now + missing;
        this.line = missing == 0 ? Line.SHOWN : new Line(fullAt, now);
    }

    /** Like {@link #take(long, long, long)}, for a call that doesn't wait. */
    long take(long cost, long nanos) {
        return take(cost, nanos, 0, fullAt);
    }

    /**
     * Takes the tokens, ahead where they come within the longest wait, and returns the ticks that the bucket is then
     * missing, more than all where it owes them; or takes none and returns less than zero: the ticks that are missing
     * for it, negated, or {@link #NEVER_FITS}, or {@link #CLOSED}.
     */
    long take(long cost, long nanos, long maxWaitNanos) {
        return take(cost, nanos, maxWaitNanos, fullAt);
    }

    private long take(long cost, long nanos, long maxWaitNanos, long lastSeen) {
        if (!ticks.fits(cost)) {
            return NEVER_FITS;
        }
        long now = ticks.at(nanos);
        long price = ticks.of(cost);
        long most = ticks.full() - price;
        long seen = lastSeen;
        while (seen != CLOSED) {
            long missing = missing(seen, now);
            if (missing > most && !isSoon(missing - most, nanos, maxWaitNanos)) {
                return most - missing;
            }
            long met = (long) FULL_AT.compareAndExchange(this, seen, now + missing + price);
            if (met == seen) {
                return missing + price;
            }
            // Not read anew: while the winner goes on that would fetch the line again, and take two threads twice as
            // long.
            seen = met;
        }
        return CLOSED;
    }

    private boolean isSoon(long ahead, long nanos, long maxWaitNanos) {
        return maxWaitNanos > 0 && ticks.nanosUntil(ahead, nanos) <= maxWaitNanos;
    }

    /** Like {@link #take(long, long)} at the present, for whom a yes or a no is enough; the no may be {@link #CLOSED}. */
    long tryTake(long cost, TimeSource time) {
        while (true) {
            long before = fullAt;
            long nanos = time.nanoTime();
            long taken = take(cost, nanos, 0, before);
            if (isFinal(taken) || lacked(before, cost, nanos, 0)) {
                return taken;
            }
        }
    }

    /** Takes at the present, ahead if it may, and says what follows; null if this level was closed. */
    <T> @Nullable T take(long cost, long maxWaitNanos, TimeSource time, Result<T> result) {
        while (true) {
            long before = fullAt;
            long nanos = time.nanoTime();
            long taken = take(cost, nanos, maxWaitNanos, before);
            if (isFinal(taken) || lacked(before, cost, nanos, maxWaitNanos)) {
                return taken == CLOSED ? null : result.of(this, cost, taken, nanos, maxWaitNanos);
            }
        }
    }

    /** What becomes of a take. */
    interface Result<T> {
        T of(Level level, long cost, long taken, long nanos, long maxWaitNanos);
    }

    private static boolean isFinal(long taken) {
        return taken >= 0 || taken == NEVER_FITS || taken == CLOSED;
    }

    /**
     * Whether the tokens weren't there, nor came soon enough, at some moment of a call that read {@link #fullAt} before
     * the clock. Between the reading of the clock and the taking others may have taken at later moments, and to the
     * older clock the bucket looks emptier than it ever was. So a no is only believed where what was there before says
     * it too.
     */
    boolean lacked(long before, long cost, long nanos, long maxWaitNanos) {
        long left = before == CLOSED ? 0 : left(before, ticks.at(nanos), ticks.of(cost));
        return left < 0 && !isSoon(-left, nanos, maxWaitNanos);
    }

    /** When the bucket is full again, in ticks, or {@link #CLOSED}. */
    long fullAt() {
        return fullAt;
    }

    /**
     * What {@link #take(long, long, long)} would say, but nothing is taken: the ticks now missing, those still to wait for
     * among them, or less than zero.
     */
    long peek(long cost, long nanos, long maxWaitNanos) {
        if (!ticks.fits(cost)) {
            return NEVER_FITS;
        }
        long seen = fullAt;
        long now = ticks.at(nanos);
        long left = left(seen, now, ticks.of(cost));
        return seen == CLOSED ? CLOSED : left < 0 && !isSoon(-left, nanos, maxWaitNanos) ? left : missing(seen, now);
    }

    /** The ticks left beyond the price; if less than zero, those it is short of. */
    private long left(long seen, long now, long price) {
        return ticks.full() - price - missing(seen, now);
    }

    /** Puts tokens back, at most until the bucket is full and none while it owes some; false if this level was closed. */
    boolean giveBack(long tokens, TimeSource time) {
        return giveBack(tokens, Answer.UNKNOWN, time);
    }

    /**
     * Puts tokens back, at most until the bucket is full, and while others wait no more than what was taken here beyond
     * what they were promised after it; false if this level was closed.
     *
     * @param position the tick that the bucket was to be full at when they had been taken, or {@link Answer#UNKNOWN}
     */
    boolean giveBack(long tokens, long position, TimeSource time) {
        long price = ticks.of(tokens);
        while (true) {
            long seen = fullAt;
            // Read after that: to an older clock what others took at later moments would look like a debt.
            long now = ticks.at(time.nanoTime());
            if (seen == CLOSED || seen - now <= 0) {
                return seen != CLOSED;
            }
            boolean owes = lastPromise(seen) - now > 0;
            if (owes ? giveBackInDebt(price, position, seen, now) : pull(seen, now, price)) {
                return true;
            }
        }
    }

    /** Pulls the moment nearer, if it is still the one that was seen. */
    private boolean pull(long seen, long now, long price) {
        return FULL_AT.weakCompareAndSet(this, seen, now + Math.max(seen - now - price, 0));
    }

    /** One at a time: to each, the last promise must stay as it was seen. */
    private synchronized boolean giveBackInDebt(long price, long position, long seen, long now) {
        Line before = line;
        long last = lastPromise(seen);
        long behind = before.behind(position, last, ticks.full());
        if (behind >= price) {
            return true;
        }
        if (behind > 0) {
            line = before.left(last, now);
        }
        boolean done = pull(seen, now, price - behind);
        if (!done) {
            line = before;
        }
        return done;
    }

    private long lastPromise(long seen) {
        return line.lastPromise(seen - ticks.full());
    }

    /** The ticks that are missing for a full bucket, or {@link #CLOSED}. */
    long missing(long nanos) {
        long seen = fullAt;
        return seen == CLOSED ? CLOSED : missing(seen, ticks.at(nanos));
    }

    private static long missing(long seen, long now) {
        long missing = seen - now; // No Math.max, which waits for the clock where a branch is foreseen.
        return missing > 0 ? missing : 0;
    }

    /** The ticks of another spec that its bucket is missing when it takes over from this one, or {@link #CLOSED}. */
    long missing(Ticks other, long nanos) {
        long seen = fullAt;
        return seen == CLOSED ? CLOSED : missing(seen, other, nanos);
    }

    /** Until the last promise the old spec counts; the tokens that are there then are kept. */
    private long missing(long seen, Ticks other, long nanos) {
        if (other == ticks) {
            return missing(seen, ticks.at(nanos));
        }
        long then = served(seen, nanos);
        return other.at(then) - other.at(nanos) + other.missingFrom(ticks, missing(seen, ticks.at(then)));
    }

    /** The moment of the last promise, if it is still to come. */
    private long served(long seen, long nanos) {
        return nanos + ticks.nanosUntil(lastPromise(seen) - ticks.at(nanos), nanos);
    }

    /**
     * Closes this level, which must be open, and returns one of another spec that holds the tokens that were here. Those
     * who wait keep their moments.
     */
    synchronized Level reopen(Ticks other, TimeSource time) {
        long seen = (long) FULL_AT.getAndSet(this, CLOSED);
        long nanos = time.nanoTime(); // not before closing: what others took since would look like a debt
        Level reopened = new Level(other, nanos, missing(seen, other, nanos));
        long served = served(seen, nanos);
        // Without a promise no step of the other clock is waited for: the next reopening would count it as a debt.
        reopened.line = new Line(reopened.fullAt, served == nanos ? other.at(nanos) : other.notBefore(served));
        return reopened;
    }

    /**
     * Takes ticks that are there, for a caller that alone writes to this level.
     *
     * @return the tick that it is full at then
     */
    long takeTicks(long price, long nanos) {
        long now = ticks.at(nanos);
        long after = now + missing(fullAt, now) + price;
        fullAt = after;
        return after;
    }

    /** Puts ticks back that were taken and are still to come, for a caller that alone writes to this level. */
    void giveBackTicks(long price) {
        FULL_AT.getAndAdd(this, -price);
    }

    /** Closes this level: nobody takes from it any more. */
    void close() {
        fullAt = CLOSED;
    }

    Ticks ticks() {
        return ticks;
    }
}
