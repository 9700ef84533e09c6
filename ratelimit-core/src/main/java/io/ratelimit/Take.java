package io.ratelimit;

import io.ratelimit.Decision.Outcome;
import org.jspecify.annotations.Nullable;

/**
 * The result of a take from a {@link BucketState}, as a number, so that taking allocates nothing. If the tokens were taken,
 * it is the ticks that the bucket is then missing; more than a full bucket's ticks if it is in debt. Otherwise it is less
 * than zero: the ticks missing for the cost, negated, or {@link #NEVER_FITS}, or {@link BucketState#CLOSED}, for which the
 * caller looks the bucket up again.
 */
final class Take {

    /** The result of a take with a cost above the capacity. */
    static final long NEVER_FITS = Long.MIN_VALUE + 1;

    private Take() {}

    /** Returns whether the result is no denial for a time, so that a look at an earlier moment would change nothing. */
    static boolean isFinal(long taken) {
        return taken >= 0 || taken == NEVER_FITS || taken == BucketState.CLOSED;
    }

    static long missingAfter(BucketState state, long taken, long cost, long nanos) {
        if (taken >= 0) {
            return taken;
        }
        return taken == NEVER_FITS
                ? state.missing(nanos)
                : state.scale().full() - state.scale().price(cost) - taken;
    }

    static Outcome outcome(long taken, long maxWaitNanos) {
        if (taken >= 0) {
            return Outcome.ALLOWED;
        }
        return taken == NEVER_FITS ? Outcome.NEVER_FITS : maxWaitNanos > 0 ? Outcome.TOO_LONG : Outcome.DENIED;
    }

    /** Returns the time after which a take with this result could succeed; zero if it did, or never can. */
    static long retryNanos(TickScale scale, long taken, long nanos) {
        return taken < 0 && taken != NEVER_FITS ? scale.nanosUntil(-taken, nanos) : 0;
    }

    static long waitNanos(TickScale scale, long taken, long nanos) {
        return taken < 0 ? 0 : scale.nanosUntil(taken - scale.full(), nanos);
    }

    /** Creates the caller's result of a take. */
    interface Result<T> {
        /** @param returned the value of {@link BucketState#returned()} before the take */
        T create(BucketState state, long cost, long taken, long nanos, long maxWaitNanos, long returned);
    }

    /**
     * The record of a take, so that its tokens can be given back.
     *
     * @param due the tick at which the tokens were due
     * @param before the ticks that the bucket was missing before the take, when its tokens were due, plus the ticks
     *     given back until then
     */
    record Receipt(BucketState state, long due, long before) {

        /**
         * @param returned {@link BucketState#returned()} as it was before the take; a later value would count too much
         *     as given back
         */
        static Receipt of(BucketState state, long cost, long taken, long nanos, long returned) {
            TickScale scale = state.scale();
            long due = scale.at(nanos) + Math.max(taken - scale.full(), 0);
            return new Receipt(state, due, Math.min(taken, scale.full()) - scale.price(cost) + returned);
        }

        /** Returns the moment of a take without a wait; reads the clock if its step is coarser than a nanosecond. */
        long takenAt(TimeSource time) {
            return state.scale().nanosAt(due, time);
        }
    }

    /** A receipt, perhaps none, with what is true of few answers only: one object more, which the others don't need. */
    record Marked(@Nullable Object receipt, boolean fallback, boolean ofOverflow, boolean ofLane) {

        /** Returns the receipt alone if nothing is true. */
        static @Nullable Object of(@Nullable Object receipt, boolean fallback, boolean ofOverflow, boolean ofLane) {
            return fallback || ofOverflow || ofLane ? new Marked(receipt, fallback, ofOverflow, ofLane) : receipt;
        }
    }
}
