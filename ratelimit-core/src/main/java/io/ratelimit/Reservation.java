package io.ratelimit;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Tokens taken from a bucket, perhaps before they are there: then they are due later. First come, first served: its
 * moment is known when it is made, and stays, whatever others do. Thread-safe.
 */
public final class Reservation {

    private final TokenBucket bucket;
    private final Taken taken;
    private final AtomicBoolean cancelled = new AtomicBoolean();

    /** What was taken from a level, and where. */
    record Taken(Ticks ticks, long cost, Decision decision, long position, long dueNanos) {

        static Taken of(Level level, long cost, long taken, long nanos, long maxWaitNanos) {
            Decision decision = Decision.of(level, cost, taken, nanos, maxWaitNanos);
            Ticks ticks = level.ticks();
            return new Taken(ticks, cost, decision, ticks.at(nanos) + taken, nanos + decision.waitNanos());
        }
    }

    Reservation(TokenBucket bucket, Taken taken) {
        this.bucket = bucket;
        this.taken = taken;
    }

    /**
     * Whether tokens were taken, and for when. If none were, there is nothing to wait for or to cancel: the wait would
     * have been too long, or there was to be none, or the cost is above the capacity.
     */
    public Decision decision() {
        return taken.decision();
    }

    /** How long it is until the tokens are due; zero from then on, and where none were taken. */
    public Duration delay() {
        return decision().allowed()
                ? Duration.ofNanos(Math.max(dueNanos() - bucket.time().nanoTime(), 0))
                : Duration.ZERO;
    }

    /**
     * Waits until the tokens are due: parks once. A cancelled reservation is waited for all the same.
     *
     * @throws IllegalStateException if none were taken
     * @throws InterruptedException if the thread is interrupted before; the reservation stays, so {@link #cancel} it
     */
    public void await() throws InterruptedException {
        if (!decision().allowed()) {
            throw new IllegalStateException(
                    "no tokens were reserved: " + decision().outcome());
        }
        bucket.time().parkUntil(dueNanos());
    }

    /**
     * Gives back the tokens, for the call will not be made: those that no later reservation stands on. Later ones keep
     * their moments. After a change of the bucket's spec none comes back before the last moment that was promised under
     * the old one. To cancel twice changes nothing; nor does it where no tokens were taken.
     *
     * @return whether this was the first time, and there were tokens
     */
    public boolean cancel() {
        boolean first = decision().allowed() && cancelled.compareAndSet(false, true);
        if (first) {
            bucket.giveBack(taken);
        }
        return first;
    }

    long dueNanos() {
        return taken.dueNanos();
    }
}
