package io.ratelimit;

import io.ratelimit.Decision.Answer;

/**
 * What the moment at which a bucket will be full doesn't show of those who wait for its tokens. Immutable; in the ticks of
 * one spec.
 *
 * @param opened the tick that the bucket was to be full at when the line began: no place in it is before that
 * @param promised the tick of the last promise that was made when somebody left
 */
record Line(long opened, long promised) {
    /*
     * Who may wait takes tokens that are not there yet, and the bucket is then full later than an empty one
     * would be: what is beyond is its debt, and also the wait. While there is a debt nobody else takes at once, and who
     * takes ahead next waits longer, so the order of arrival is the order of grants. The moment is a promise, made when
     * the call asked, and holds on one condition: that whoever takes before it finds the tokens gone. So what a waiter
     * gives back can't all be had again: those behind him were promised moments that count on his tokens being taken.
     * Only what is more than theirs comes back (CancelAt in Go's x/time/rate). At 1/s, empty, A takes 5 ahead and B 3: B
     * is promised the eighth second. When A gives back, 2 come back; if B had left before him, all 5 would.
     *
     * After that the moment no longer shows how far the last promise reaches, so it is kept beside it, and only moves on.
     * Why that is enough: from each promise on, all that is promised then and later is no more than what brings the
     * bucket from there to full (what is due from D on is at most fullAt - D). Taking adds the same to both. Giving back
     * c takes c from what is promised at D and before, and c less the way from D to the last promise from fullAt.
     */

    /** Of a bucket whose moment shows all. */
    static final Line SHOWN = new Line(0, 0);

    /**
     * The tick of the last promise.
     *
     * @param shown where it is as far as the bucket's moment shows
     */
    long lastPromise(long shown) {
        return this == SHOWN || shown - promised >= 0 ? shown : promised;
    }

    /**
     * The ticks from where tokens were taken to the last promise; more than any price if they weren't taken in this line.
     *
     * @param position the tick that the bucket was to be full at when they had been taken, or {@link Answer#UNKNOWN}
     * @param full the ticks from empty to full
     */
    long behind(long position, long lastPromise, long full) {
        long behind = lastPromise + full - position;
        boolean isElsewhere = position == Answer.UNKNOWN || this != SHOWN && position - opened <= 0;
        return isElsewhere || behind < 0 ? Long.MAX_VALUE : behind;
    }

    /** The line that somebody left before others, who were promised moments until then. */
    Line left(long lastPromise, long now) {
        return new Line(this == SHOWN ? now : opened, lastPromise);
    }
}
