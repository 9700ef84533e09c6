package io.ratelimit;

import io.ratelimit.Take.Receipt;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Tokens taken from a bucket, perhaps ahead of time; then they are due later. The moment is fixed when the reservation
 * is made, first come, first served, and no other call changes it. Thread-safe.
 */
public final class Reservation {

    private final TokenBucket bucket;
    private final long cost;
    private final Decision decision;
    private final Receipt receipt;
    private final long dueNanos;
    private final AtomicBoolean cancelled = new AtomicBoolean();

    /** Creates the reservation of a take from a bucket's state: see {@link Take.Result#create}. */
    Reservation(
            TokenBucket bucket,
            BucketState state,
            long cost,
            long taken,
            long nanos,
            long maxWaitNanos,
            long returned) {
        this.bucket = bucket;
        this.cost = cost;
        this.decision = new Decision(state, cost, taken, nanos, maxWaitNanos);
        this.receipt = Receipt.of(state, cost, taken, nanos, returned);
        this.dueNanos = nanos + decision.waitNanos();
    }

    /**
     * Returns whether tokens were taken, and when they are due. A denial leaves nothing to wait for or to cancel: the
     * wait would have been too long, or the cost is above the capacity.
     */
    public Decision decision() {
        return decision;
    }

    /** Returns the time until the tokens are due; zero afterwards, and if no tokens were taken. */
    public Duration delay() {
        return Duration.ofNanos(
                decision.allowed() ? Math.max(dueNanos - bucket.time().nanoTime(), 0) : 0);
    }

    /**
     * Waits until the tokens are due, parking the thread at most once. Cancelling the reservation doesn't end the wait.
     *
     * @throws IllegalStateException if no tokens were taken
     * @throws InterruptedException if the thread is interrupted before; the reservation stays, so {@link #cancel} it
     */
    public void await() throws InterruptedException {
        if (!decision.allowed()) {
            throw new IllegalStateException("no tokens were reserved: " + decision.outcome());
        }
        bucket.time().parkUntil(dueNanos);
    }

    /**
     * Returns the tokens that no later reservation depends on and that time has not brought back since they were due.
     * If many reservations are cancelled at once, a few more tokens may be left to time. Later reservations keep their
     * moments. After a change of the bucket's spec, no tokens come back before the last moment promised under the old
     * spec.
     *
     * <p>A second call changes nothing, nor does a call if no tokens were taken.
     *
     * @return whether this was the first call and tokens had been taken
     */
    public boolean cancel() {
        boolean first = decision.allowed() && cancelled.compareAndSet(false, true);
        if (first) {
            bucket.giveBack(cost, receipt);
        }
        return first;
    }

    long dueNanos() {
        return dueNanos;
    }
}
