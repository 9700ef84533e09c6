package io.ratelimit;

import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Lanes.LaneReceipt;
import io.ratelimit.Take.Marked;
import io.ratelimit.Take.Receipt;
import org.jspecify.annotations.Nullable;

/**
 * An attempt to take from the pool and from the lane of a call at one moment, and what each of them returned. Needs the lock
 * of the lanes, except to deny. For one thread.
 */
final class LaneAttempt {

    private final Lanes lanes;
    private final Charge charge;
    private final Share share;
    private final long maxWaitNanos;
    private BucketState pool;
    private long nanos;
    private long leave;

    /** The result of a take from the pool: see {@link Take}. */
    private long ofPool = BucketState.CLOSED;

    private @Nullable BucketState lane;
    private long ofLane = Take.NEVER_FITS;

    LaneAttempt(Lanes lanes, Charge charge, Share share, long maxWaitNanos, BucketState pool, long nanos) {
        this.lanes = lanes;
        this.charge = charge;
        this.share = share;
        this.maxWaitNanos = maxWaitNanos;
        this.pool = pool;
        this.nanos = nanos;
        this.leave = share.leave();
    }

    BucketState pool() {
        return pool;
    }

    void move(BucketState pool, long nanos) {
        this.pool = pool;
        this.nanos = nanos;
    }

    /**
     * Takes from the pool, or from both, or from the lane ahead. Returns null if the tokens are missing, or the pool is
     * closed.
     */
    @Nullable
    Answer take(boolean mayWait) {
        long returned = pool.returned();
        leave = share.leave();
        ofPool = pool.take(charge.cost(), leave, nanos, 0);
        if (ofPool >= 0) {
            return new Answer(charge, pool, leave, ofPool, nanos, 0, receipt(returned));
        }
        long step = findLane();
        if (lane != null && ofLane >= 0) {
            leave = 0;
            ofPool = pool.take(charge.cost(), nanos, 0);
            return ofPool < 0 ? null : takeFromLane(lane, returned);
        }
        return mayWait && lane != null && mayWait(lane, step) ? takeAhead(lane, step) : null;
    }

    /** Finds the lane, and looks whether it has the tokens. Returns its moment: no lane gets a token before the pool does. */
    private long findLane() {
        long step = pool.scale().stepAt(nanos);
        lane = lanes.lane(share, step);
        ofLane = lane == null ? Take.NEVER_FITS : lane.peek(charge.cost(), step, 0);
        return step;
    }

    /** Takes from the lane what the pool has paid. */
    private Answer takeFromLane(BucketState lane, long returned) {
        LaneReceipt receipt = new LaneReceipt(lane, charge.cost(), nanos, receipt(returned));
        long step = pool.scale().stepAt(lanes.time().nanoTime());
        if (lane.missing(step) == 0) { // perhaps a new one
            lanes.keep(share, lane);
        }
        return answer(receipt, step, 0);
    }

    private Answer takeAhead(BucketState lane, long step) {
        LaneReceipt ahead = new LaneReceipt(lane, charge.cost(), due(lane, -ofLane, step), null);
        lanes.payLater(charge, pool, ahead, nanos);
        return answer(ahead, step, maxWaitNanos);
    }

    private Answer answer(LaneReceipt receipt, long step, long waitNanos) {
        long taken = receipt.lane().take(charge.cost(), step, waitNanos);
        return new Answer(charge, receipt.lane(), 0, taken, step, waitNanos, ofLane(receipt));
    }

    /** Returns whether a call may wait for its lane. None waits while the pool is in debt, since shares are then late. */
    private boolean mayWait(BucketState lane, long step) {
        return maxWaitNanos > 0
                && lane.peek(charge.cost(), step, maxWaitNanos) >= 0
                && pool.missing(step) <= pool.scale().full();
    }

    /** Returns the moment at which a lane has regained the ticks: the beginning of a step of the pool's clock. */
    private long due(BucketState lane, long ticks, long step) {
        long due = step + lane.scale().nanosUntil(ticks, step);
        return pool.scale().stepAt(due + pool.scale().stepNanos - 1);
    }

    /** Returns whether the pool lacked the tokens in the state that it had before the take. */
    boolean wasPoolShort(BucketState previous, long fullAt) {
        return ofPool == Take.NEVER_FITS
                || pool == previous
                        && ofPool != BucketState.CLOSED
                        && pool.wasShort(fullAt, charge.cost() + leave, nanos, 0);
    }

    private long peekPool() {
        return pool.scale().fits(charge.cost(), leave) ? pool.peek(charge.cost() + leave, nanos, 0) : Take.NEVER_FITS;
    }

    /**
     * Returns whether the pool is short at this moment, and was before. The lock isn't needed.
     *
     * @param fullAt the state of the pool before this moment
     */
    boolean isPoolShort(long fullAt) {
        ofPool = peekPool();
        return ofPool < 0 && wasPoolShort(pool, fullAt);
    }

    /** Returns the denial of a lane that was found without the lock; null if the call has none. */
    Answer denied(@Nullable BucketState lane, long ofLane) {
        this.lane = lane;
        this.ofLane = ofLane;
        return denied();
    }

    /** Returns the answer that {@link #take} would give; null if the pool is closed. */
    @Nullable
    Answer peek() {
        ofPool = peekPool();
        if (ofPool >= 0) {
            return new Answer(charge, pool, leave, ofPool, nanos, 0, null);
        }
        long step = findLane();
        if (lane != null && ofLane >= 0) {
            leave = 0;
            ofPool = peekPool();
            if (ofPool >= 0) {
                return new Answer(charge, lane, 0, ofLane, nanos, 0, ofLane(null));
            }
        } else if (lane != null && mayWait(lane, step)) {
            long ahead = lane.peek(charge.cost(), step, maxWaitNanos);
            return new Answer(charge, lane, 0, ahead, step, maxWaitNanos, ofLane(null));
        }
        return ofPool == BucketState.CLOSED ? null : denied();
    }

    /**
     * Returns the denial by the lane or by the pool, whichever can serve the call sooner. A call that only a lane could
     * serve is denied as by an empty lane if there is no room for its own: a place may become free.
     */
    Answer denied() {
        BucketSpec spec = share.guaranteed();
        if (lane == null && spec != null && ofPool == Take.NEVER_FITS) {
            TickScale scale = lanes.scale(spec, nanos);
            lane = new BucketState(scale, nanos, scale.full());
            ofLane = lane.peek(charge.cost(), nanos, 0);
        }
        if (lane != null && ofLane < 0 && ofLane != Take.NEVER_FITS) {
            long wait = Take.retryNanos(pool.scale(), ofPool, nanos);
            if (ofPool == Take.NEVER_FITS || Take.retryNanos(lane.scale(), ofLane, nanos) < wait) {
                return new Answer(charge, lane, 0, ofLane, nanos, maxWaitNanos, ofLane(null));
            }
        }
        return new Answer(charge, pool, leave, ofPool, nanos, maxWaitNanos, null);
    }

    private Receipt receipt(long returned) {
        return Receipt.of(pool, charge.cost(), ofPool, nanos, returned);
    }

    private static @Nullable Object ofLane(@Nullable LaneReceipt receipt) {
        return Marked.of(receipt, false, false, true);
    }
}
