package io.ratelimit;

import io.ratelimit.Take.Receipt;
import java.math.BigInteger;
import org.jspecify.annotations.Nullable;

/**
 * The state of a bucket before its conversion to another spec. If every call on the converted state was denied, the next
 * conversion starts from this state instead. So the fraction of a token that the first conversion cut off isn't lost.
 *
 * @param convertedTo the first {@link BucketState#fullAt} of the converted state
 */
record BucketConversion(TickScale scale, long fullAt, Backlog backlog, long convertedTo) {
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

    /** Returns the state to convert: this one, or the one that it was converted from if no call took tokens since. */
    static BucketConversion of(BucketState state, long fullAt) {
        Backlog current = state.backlog();
        BucketConversion origin = current.origin();
        return origin != null && origin.convertedTo == fullAt
                ? origin
                : new BucketConversion(state.scale(), fullAt, current.withoutOrigin(), 0);
    }

    /**
     * Returns whether the conversion may count from a moment that was read before the state was closed. Other threads may have
     * taken at later moments. Another rate would bring too many tokens for the time between, or too few. And their takes must
     * not look like a debt.
     */
    boolean mayCountFrom(long nanos, TickScale other) {
        return !other.isFasterThan(scale)
                && !scale.isFasterThan(other)
                && BucketState.missing(fullAt, scale.at(nanos)) <= scale.full();
    }

    /**
     * Closes a state, which must be open, and returns a state of another spec with the same tokens. Waiting calls keep
     * their turn.
     *
     * @param before a moment that was read earlier; the conversion counts from it if it may, as if the call had come
     *     first, since a clock costs more
     */
    static BucketState convert(BucketState state, TickScale other, long before, TimeSource time) {
        return state.replace(fullAt -> {
            BucketConversion origin = of(state, fullAt);
            long nanos = origin.mayCountFrom(before, other) ? before : time.nanoTime();
            return origin.to(other, state.scale(), state.backlog(), nanos);
        });
    }

    /**
     * Converts a state like {@link #convert(BucketState, TickScale, long, TimeSource)}, but only if the new state has no debt
     * and no thread takes meanwhile. The caller holds the state's lock; the state was identified.
     *
     * @return null if the state wasn't converted
     */
    static @Nullable BucketState withoutDebt(BucketState state, TickScale other, long before, TimeSource time) {
        long seen = state.fullAt();
        if (seen == BucketState.CLOSED) {
            return null;
        }
        BucketConversion origin = of(state, seen);
        long nanos = origin.mayCountFrom(before, other) ? before : time.nanoTime();
        BucketState next = origin.to(other, state.scale(), state.backlog(), nanos);
        return next.missing(nanos) <= other.full() && state.closeAt(seen) ? next : null;
    }

    /** Returns the ticks of another spec that a bucket is missing if its state is converted, or {@link BucketState#CLOSED}. */
    static long missing(BucketState state, TickScale other, long nanos) {
        long seen = state.fullAt();
        return seen == BucketState.CLOSED ? seen : of(state, seen).convert(other, nanos).missing;
    }

    /**
     * Returns a new state, as short of tokens as a copied one, whose clock has no advance. Tokens that were taken from the
     * copied state come back to the new one.
     */
    static BucketState inherited(BucketState copied, TickScale other, long nanos) {
        Converted converted = of(copied, copied.fullAt()).convert(other, nanos);
        long fullAt = other.at(nanos) + converted.missing + converted.advance;
        BucketSpec spec = copied.scale().spec();
        Backlog left = copied.backlog().copied();
        long cut = left.cut() + Math.max(spec.capacity() - other.spec().capacity(), 0);
        long promised = fullAt - other.full();
        Backlog after = left.after(spec, other.spec(), promised, null, cut, BucketState.CLOSED);
        return new BucketState(other, fullAt, 0, after);
    }

    /** @param advance the ticks by which the clock is ahead until the step after a moment: see {@link TickScale} */
    private record Converted(long missing, long advance, long advancedFrom) {}

    /** Returns the state of another spec with the same tokens; the scale and the backlog are the closed state's. */
    BucketState to(TickScale other, TickScale closed, Backlog left, long nanos) {
        return other.base() == scale.base() ? restored(closed, left, nanos) : converted(other, closed, left, nanos);
    }

    private BucketState restored(TickScale closed, Backlog left, long nanos) {
        long restored = scale.at(nanos) + missingAt(nanos);
        long lastPromise = owes() ? backlog.promised() : backlog.lastPromise(restored, scale.full());
        Backlog after = left.after(closed.spec(), scale.spec(), lastPromise, null, left.cut(), owed(restored));
        return new BucketState(scale, restored, 0, after);
    }

    private BucketState converted(TickScale other, TickScale closed, Backlog left, long nanos) {
        Converted result = convert(other, nanos);
        TickScale advanced = other.advanced(result.advance, result.advancedFrom);
        long converted = advanced.at(nanos) + result.missing;
        long last = lastPromiseNanos(nanos);
        // Without a promise the current step of the other clock counts: the next step would look like a debt.
        long promised = last == nanos ? advanced.at(nanos) : advanced.atOrAfter(last);
        boolean fraction = new Ticks(scale, other).cutsFraction(fullAt - scale.at(nanos), nanos);
        BucketConversion origin = fraction ? new BucketConversion(scale, fullAt, backlog, converted) : null;
        long cut = left.cut() + Math.max(closed.spec().capacity() - other.spec().capacity(), 0);
        Backlog after = left.after(closed.spec(), other.spec(), promised, origin, cut, owed(converted));
        return new BucketState(advanced, converted, 0, after);
    }

    private long owed(long fullAt) {
        return owes() ? fullAt : BucketState.CLOSED;
    }

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
        Ticks ticks = new Ticks(scale, other);
        long last = lastPromiseNanos(nanos);
        long end = nanosOrLater(fullAt - scale.full(), nanos);
        long left = missingAt(last);
        long missing = ticks.missing(left, last) + other.at(last);
        long worth = ticks.isSimple(left) ? missing : ticks.worthMissing(left, last) + other.at(last);
        if (end < last) {
            long atEnd = ticks.worthMissing(missingAt(end), end) + other.at(end);
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

    private boolean owes() {
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

    /**
     * Returns the most ticks that can have come since the tokens of another state of this bucket were due. If the
     * capacity fell, the bucket is missing that many tokens less.
     */
    static long maxGain(Receipt receipt, BucketState state, long now) {
        TickScale before = receipt.state().scale();
        TickScale scale = state.scale();
        long nanos = before.nanosSince(receipt.due(), now);
        long refill = Math.max(scale.maxRefill(nanos, before.spec()), scale.maxRefill(nanos, scale.spec()));
        Backlog current = state.backlog();
        if (current.fastest() != null) {
            refill = Math.max(refill, scale.maxRefill(nanos, current.fastest()));
        }
        long tokensCut = Math.max(
                current.cut() - receipt.state().backlog().cut(),
                before.spec().capacity() - scale.spec().capacity());
        long cut = scale.price(Math.max(tokensCut, 0));
        return cut + Math.min(refill, scale.full() - cut);
    }

    /** The conversion of ticks between the scales of two specs. */
    record Ticks(TickScale from, TickScale to) {

        /** A quotient below this bound that is computed with doubles is wrong by less than two. */
        private static final double MAX_ESTIMATE = 1L << 50;

        /** Returns the ticks missing under the new spec for the tokens of a bucket of the old one, cut to the new capacity. */
        long missing(long missing, long nanos) {
            return isSimple(missing)
                    ? simplyConverted(missing)
                    : to.full - Math.max(to.full - worthMissing(missing, nanos), keptTokens(missing));
        }

        /** Returns whether a conversion has no debt and no batches, and no product in it exceeds a {@code long}. */
        private boolean isSimple(long missing) {
            return to.spec.refill() == BucketSpec.Refill.GREEDY
                    && from.spec.refill() == BucketSpec.Refill.GREEDY
                    && missing >= 0
                    && missing <= from.full
                    && Math.multiplyHigh(to.perToken, from.perToken) == 0
                    && to.perToken * from.perToken > 0;
        }

        private long simplyConverted(long missing) {
            long left = from.full - missing;
            if (to.perToken == from.perToken) {
                return Math.max(to.full - left, 0);
            }
            long tokens = left / from.perToken;
            return tokens >= to.capacity
                    ? 0
                    : to.full - tokens * to.perToken - left % from.perToken * to.perToken / from.perToken;
        }

        private long keptTokens(long missing) {
            long left = from.full - missing;
            return to.perToken == from.perToken
                    ? atMostFull(left)
                    : atMostFull(floor(product(left, to.perToken), BigInteger.valueOf(from.perToken)));
        }

        /** Returns at most the ticks of a full bucket, and no less than the largest debt. */
        private long atMostFull(BigInteger ticks) {
            return ticks.min(BigInteger.valueOf(to.full))
                    .max(BigInteger.valueOf(-to.maxDebt))
                    .longValueExact();
        }

        private long atMostFull(long ticks) {
            return Math.max(Math.min(ticks, to.full), -to.maxDebt);
        }

        /**
         * Like {@link #missing(long, long)}, but less the part of the next batch that counts as earned: the result may be more than
         * a full bucket.
         */
        long worthMissing(long missing, long nanos) {
            if (isSimple(missing)) {
                return simplyConverted(missing);
            }
            long fromClock = from.clock(nanos);
            long fromSince = from.sinceStep(fromClock);
            long left = from.full - missing - from.advanceAt(fromClock);
            long since = to.sinceStep(to.clock(nanos));
            if (to.perToken == from.perToken && to.stepNanos == from.stepNanos && since == fromSince) {
                return to.full - atMostFull(left + (from.perStep - to.perStep) / to.perToken * parts(to, since));
            }
            long worth = left + from.perStep / from.perToken * parts(from, fromSince);
            BigInteger perTick = product(to.stepNanos, from.perToken);
            BigInteger ticks = product(worth, to.perToken).multiply(BigInteger.valueOf(to.stepNanos));
            BigInteger earned = product(to.perStep, since).multiply(BigInteger.valueOf(from.perToken));
            return to.full - atMostFull(floor(ticks.subtract(earned), perTick));
        }

        /**
         * Returns the parts of the period that have passed since the last batch. A part earns as many ticks as a batch has
         * tokens.
         */
        private static long parts(TickScale scale, long since) {
            return since == 0 ? 0 : quotient(since, scale.perToken, scale.stepNanos);
        }

        private static BigInteger floor(BigInteger a, BigInteger b) {
            BigInteger[] quotient = a.divideAndRemainder(b);
            return quotient[1].signum() < 0 ? quotient[0].subtract(BigInteger.ONE) : quotient[0];
        }

        /** Returns {@code a * b / c}, rounded down. */
        static long quotient(long a, long b, long c) {
            double estimate = (double) a * b / c;
            if (Math.abs(estimate) >= MAX_ESTIMATE) {
                return floor(product(a, b), BigInteger.valueOf(c)).longValueExact();
            }
            // The products wrap around, their difference is at most a few c.
            long near = (long) estimate;
            return near + Math.floorDiv(a * b - near * c, c);
        }

        private static BigInteger product(long a, long b) {
            return BigInteger.valueOf(a).multiply(BigInteger.valueOf(b));
        }

        /** Returns whether a conversion cuts off a fraction of a tick, as it does wherever a part of a batch counts. */
        boolean cutsFraction(long missing, long nanos) {
            if (isSimple(Math.max(missing, 0))) {
                long left = from.full - Math.max(missing, 0);
                return to.perToken != from.perToken
                        && left / from.perToken < to.capacity
                        && left % from.perToken * to.perToken % from.perToken != 0;
            }
            if (to.sinceStep(to.clock(nanos)) + from.sinceStep(from.clock(nanos)) > 0) {
                return true;
            }
            BigInteger[] kept = product(from.full - Math.max(missing, 0), to.perToken)
                    .divideAndRemainder(BigInteger.valueOf(from.perToken));
            return kept[1].signum() != 0 && kept[0].compareTo(BigInteger.valueOf(to.full)) < 0;
        }
    }
}
