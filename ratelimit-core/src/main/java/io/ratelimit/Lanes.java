package io.ratelimit;

import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Take.Receipt;
import java.math.BigInteger;
import java.time.Duration;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The lanes of one policy with {@linkplain Shares guaranteed shares}, beside the bucket that is their pool. Thread-safe. */
final class Lanes {
    /*
     * Why the pool never denies what a lane has. Let the tokens of all lanes be summed up, where a lane that doesn't exist
     * counts as full. The pool always has at least this sum. A call without a lane leaves at least the reserve, which is
     * the sum of full lanes. A call with a lane takes the same from both. Time brings the pool at least what it brings all
     * lanes, or the pool is full. And a lane gets back no more than the pool did: time pays for a take from the pool sooner,
     * and what time has brought doesn't come back.
     *
     * The lock. The pool is a bucket like any other, and most calls take from it by one compare-and-set. Only a call that
     * its lane may serve takes the lock, under which lanes are written: pool first, then the lane. The call counts at the
     * moment at which it takes from the pool. No other call sees the moment between, since a call without a lane looks only
     * at the reserve. A return puts tokens into the pool first, for the same reason.
     *
     * The lane pays at a moment that is read after the pool has paid. By an older one it would have tokens that came before
     * another call borrowed, and the pool wouldn't.
     *
     * A denial needs no lock. Without returns a lane only gets emptier, apart from time. So if it was short before a look
     * at the pool, and no tokens were returned to it until after that look, it was short at that moment too.
     *
     * Waits. A call that waits takes the tokens ahead from its lane only, which is then in debt. The pool pays at the moment at
     * which the lane has the tokens: the calls and their moments are in a queue, and each call of this policy first pays for
     * those that are due. It is then as if the lane had served the call at that moment, and nothing above changes. If the
     * pool paid ahead too, it would be short of tokens that other lanes have.
     *
     * Places. A lane without missing tokens is like no lane, so it makes room for another key. The map is searched for such
     * lanes only when it has no room, and at most once a millisecond.
     */

    private static final long SEARCH_NANOS = Duration.ofMillis(1).toNanos();

    private final PolicyBuckets buckets;
    private final TimeSource time;
    private final Map<String, BucketState> lanes = new ConcurrentHashMap<>(); // written under the lock
    private final Map<BucketSpec, TickScale> scales = new ConcurrentHashMap<>();
    private volatile long searchedAt; // written under the lock
    private final Queue<LaneReceipt> waiting = new PriorityQueue<>((one, other) -> Long.signum(one.due - other.due));
    private volatile @Nullable LaneReceipt next; // the first of those that wait, written under the lock

    Lanes(PolicyBuckets buckets, TimeSource time) {
        this.buckets = buckets;
        this.time = time;
        this.searchedAt = time.nanoTime() - SEARCH_NANOS;
    }

    TimeSource time() {
        return time;
    }

    /** The receipt of a take that a lane paid: at once, or ahead of the pool. */
    static final class LaneReceipt {

        private final BucketState lane;
        private final long cost;
        private final long due;
        private @Nullable Receipt pool; // written under the lock

        /** @param due the moment at which the lane has the tokens */
        LaneReceipt(BucketState lane, long cost, long due, @Nullable Receipt pool) {
            this.lane = lane;
            this.cost = cost;
            this.due = due;
            this.pool = pool;
        }

        BucketState lane() {
            return lane;
        }
    }

    /** Takes the tokens of a charge from the pool alone, or also from the charge's lane, or takes none. */
    Answer take(Charge charge, Share share, long firstNanos, long maxWaitNanos) {
        pay(charge, firstNanos);
        BucketState pool = buckets.bucket(charge, firstNanos);
        long returned = pool.returned();
        long taken = pool.take(charge.cost(), share.leave(), firstNanos, 0);
        if (taken >= 0) {
            Receipt receipt = Receipt.of(pool, charge.cost(), taken, firstNanos, returned);
            return new Answer(charge, pool, share.leave(), taken, firstNanos, 0, receipt);
        }
        Answer denial = denial(charge, share, pool, firstNanos, maxWaitNanos);
        return denial == null ? takeLocked(charge, share, pool, firstNanos, maxWaitNanos) : denial;
    }

    /** Pays for the calls whose lanes have their tokens by now. Precedes all that is done with the pool at this moment. */
    void pay(Charge charge, long nanos) {
        LaneReceipt first = next;
        if (first != null && first.due - nanos <= 0) {
            payLocked(charge, nanos);
        }
    }

    private synchronized void payLocked(Charge charge, long nanos) {
        for (LaneReceipt call = next; call != null && call.due - nanos <= 0; call = next) {
            BucketState pool = buckets.bucketSince(charge, call.due);
            long returned = pool.returned();
            long cost = Math.min(call.cost, pool.scale().spec().capacity());
            long taken = pool.take(cost, call.due, ThrottlePolicy.LONGEST_WAIT.toNanos());
            if (taken != BucketState.CLOSED) {
                call.pool = taken < 0 ? null : Receipt.of(pool, cost, taken, call.due, returned);
                waiting.remove();
                next = waiting.peek();
            }
        }
    }

    /** Returns a denial if the pool and the lane were short at one moment; null if that takes the lock to know. */
    private @Nullable Answer denial(Charge charge, Share share, BucketState pool, long firstNanos, long maxWaitNanos) {
        long cost = charge.cost();
        BucketSpec spec = share.guaranteed();
        BucketState lane = spec == null ? null : lanes.get(buckets.storedKey(share.key()));
        long returned = lane == null ? 0 : lane.returned();
        long laneBefore = lane == null ? 0 : lane.fullAt();
        boolean mayServe = lane == null
                ? spec != null && mayHaveRoom(share.lanes(), firstNanos)
                : lane.peek(cost, firstNanos, maxWaitNanos) >= 0
                        || !lane.scale().spec().equals(spec);
        if (mayServe) {
            return null;
        }
        long before = pool.fullAt();
        long nanos = time.nanoTime();
        long step = pool.scale().stepAt(nanos);
        LaneAttempt attempt = new LaneAttempt(this, charge, share, maxWaitNanos, pool, nanos);
        if (!attempt.isPoolShort(before) || pool != buckets.bucket(charge, nanos)) {
            return null;
        }
        long own = lane == null ? Take.NEVER_FITS : lane.peek(cost, step, maxWaitNanos);
        boolean isLaneShort = own == Take.NEVER_FITS
                || lane != null
                        && own < 0
                        && lane.wasShort(laneBefore, cost, step, maxWaitNanos)
                        && lane.returned() == returned;
        return isLaneShort ? attempt.denied(lane, own) : null;
    }

    /**
     * Takes at the first moment, by which the buckets may look too empty. Otherwise takes at a moment after
     * {@code pool.fullAt()} was read: a denial stands only if the pool denied at that state too.
     */
    private synchronized Answer takeLocked(
            Charge charge, Share share, BucketState firstPool, long firstNanos, long maxWaitNanos) {
        LaneAttempt attempt = new LaneAttempt(this, charge, share, maxWaitNanos, firstPool, firstNanos);
        Answer answer = attempt.take(false);
        while (answer == null) {
            BucketState previous = attempt.pool();
            long before = previous.fullAt();
            long nanos = time.nanoTime();
            pay(charge, nanos);
            attempt.move(buckets.bucket(charge, nanos), nanos);
            answer = attempt.take(true);
            if (answer == null && attempt.wasPoolShort(previous, before)) {
                answer = attempt.denied();
            }
        }
        return answer;
    }

    Answer peek(Charge charge, Share share, long nanos, long maxWaitNanos) {
        pay(charge, nanos);
        Answer denial = denial(charge, share, buckets.peek(charge, nanos), nanos, maxWaitNanos);
        return denial == null ? peekLocked(charge, share, nanos, maxWaitNanos) : denial;
    }

    private synchronized Answer peekLocked(Charge charge, Share share, long nanos, long maxWaitNanos) {
        Answer answer = null;
        while (answer == null) {
            answer = new LaneAttempt(this, charge, share, maxWaitNanos, buckets.peek(charge, nanos), nanos).peek();
        }
        return answer;
    }

    /** Returns the lane of a charge, perhaps a new one that isn't kept yet; null if it has none, or there is no room for it. */
    @Nullable
    BucketState lane(Share share, long nanos) {
        BucketSpec spec = share.guaranteed();
        if (spec == null) {
            return null;
        }
        String key = buckets.storedKey(share.key());
        BucketState lane = lanes.get(key);
        if (lane == null) {
            return hasRoom(share.lanes(), nanos) ? new BucketState(scale(spec, nanos), nanos) : null;
        } else if (!lane.scale().spec().equals(spec)) {
            lane = BucketConversion.convert(lane, scale(spec, nanos), nanos, time);
            lanes.put(key, lane);
        }
        return lane;
    }

    TickScale scale(BucketSpec spec, long nanos) {
        TickScale known = scales.get(spec);
        return known == null ? scales.computeIfAbsent(spec, same -> TickScale.of(same, nanos)) : known;
    }

    void keep(Share share, BucketState lane) {
        lanes.putIfAbsent(buckets.storedKey(share.key()), lane);
    }

    /** Lets the pool pay for a take later, when the lane has the tokens. */
    void payLater(Charge charge, BucketState pool, LaneReceipt ahead, long nanos) {
        buckets.keep(charge, pool, ahead.due - nanos);
        waiting.add(ahead);
        next = waiting.peek();
    }

    private boolean hasRoom(int maxLanes, long nanos) {
        if (lanes.size() >= maxLanes && mayHaveRoom(maxLanes, nanos)) {
            searchedAt = nanos;
            lanes.values().removeIf(lane -> lane.missing(nanos) == 0);
        }
        return lanes.size() < maxLanes;
    }

    private boolean mayHaveRoom(int maxLanes, long nanos) {
        return lanes.size() < maxLanes || nanos - searchedAt >= SEARCH_NANOS;
    }

    /** Returns tokens to the pool, and to the lane no more than the pool got. No reset comes between the two. */
    synchronized void giveBack(Answer taken, Share share, LaneReceipt receipt, long kept) {
        Receipt paid = paid(taken.charge(), receipt, kept);
        BucketState pool = paid == null ? null : paid.state();
        while (paid != null && pool != null) {
            long ticks = pool.giveBack(taken.charge().cost() - kept, kept, paid, 0, time);
            BucketState lane = lanes.get(buckets.storedKey(share.key())); // perhaps another than the one that paid
            if (ticks != BucketState.CLOSED && lane != null) {
                giveBackToLane(
                        lane,
                        BigInteger.valueOf(ticks),
                        BigInteger.valueOf(pool.scale().price(1)));
            }
            pool = ticks == BucketState.CLOSED ? buckets.bucketTakenFrom(taken.withReceipt(paid)) : null;
        }
    }

    /** Returns the receipt of the pool; null if it hasn't paid, and need not, since the call doesn't wait any more. */
    private @Nullable Receipt paid(Charge charge, LaneReceipt receipt, long kept) {
        payLocked(charge, kept == 0 ? time.nanoTime() : receipt.due);
        if (waiting.remove(receipt)) {
            next = waiting.peek();
            BucketState lane = receipt.lane;
            long debt = lane.missing(receipt.due) - lane.scale().full();
            if (debt <= 0 && !lane.isClosed()) { // no later call relies on the tokens
                lane.giveBackTicks(lane.scale().price(receipt.cost));
            }
        }
        return receipt.pool;
    }

    /** A lane in debt gets nothing back: the calls that wait for it rely on that. */
    private void giveBackToLane(BucketState lane, BigInteger ticks, BigInteger perToken) {
        BigInteger ofLane =
                ticks.multiply(BigInteger.valueOf(lane.scale().price(1))).divide(perToken);
        long missing = lane.missing(time.nanoTime());
        if (missing > 0 && missing <= lane.scale().full()) {
            lane.giveBackTicks(
                    ofLane.min(BigInteger.valueOf(lane.scale().full())).longValueExact());
        }
    }

    /** Takes tokens from the lane of a call, even if it has too few: it is emptied at most. */
    synchronized void owe(Share share, long tokens) {
        String key = buckets.storedKey(share.key());
        BucketState present = lanes.get(key);
        BucketState lane = present == null ? lane(share, time.nanoTime()) : present;
        if (lane != null) {
            lane.owe(tokens, true, time);
            lanes.put(key, lane);
        }
    }

    /** Returns the lane of a share as it is now; a full one if it doesn't exist. */
    BucketSnapshot snapshot(Share share, BucketSpec spec, long nanos) {
        BucketState lane = lanes.get(buckets.storedKey(share.key()));
        return lane == null
                ? BucketSnapshot.of(scale(spec, nanos), 0, nanos)
                : BucketSnapshot.of(lane.scale(), lane.missing(nanos), nanos);
    }

    /** Forgets the pool and all lanes, so that they are full: no lane takes between the two. */
    synchronized void reset(Runnable pool) {
        pool.run();
        lanes.clear();
        waiting.clear();
        next = null;
    }

    int size() {
        return lanes.size();
    }
}
