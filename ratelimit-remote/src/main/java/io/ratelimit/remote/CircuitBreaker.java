package io.ratelimit.remote;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A circuit breaker: opens when half of the last ten calls failed, then rejects all calls but one probe every half second,
 * and closes when a probe succeeds. Thread-safe and lock-free.
 *
 * <p>A caller {@link #enter enters} before its call and reports the result to the round that it entered. A report to an
 * earlier round is ignored: a call that began before the breaker opened must not close it.
 */
final class CircuitBreaker {

    /** The time between two probes of an open breaker. */
    static final Duration PAUSE = Duration.ofMillis(500);

    /** The time after which a probe without a report is taken for lost: its thread may have failed before it could report. */
    static final Duration LOST = Duration.ofMinutes(1);

    private static final int FAILURES_TO_OPEN = 5;
    private static final long LAST_TEN = (1 << 10) - 1;

    private final TimeSource time;
    private final AtomicReference<Round> round = new AtomicReference<>(new Closed());

    CircuitBreaker(TimeSource time) {
        this.time = time;
    }

    /** The time between two changes of the breaker. */
    sealed interface Round {}

    /** Calls are made. The bits are the last results, the latest lowest; one is a failure. */
    private record Closed(AtomicLong results) implements Round {

        Closed() {
            this(new AtomicLong());
        }

        boolean fail() {
            long last = results.updateAndGet(bits -> bits << 1 & LAST_TEN | 1);
            return Long.bitCount(last) >= FAILURES_TO_OPEN;
        }

        void succeed() {
            if (results.get() != 0) {
                results.updateAndGet(bits -> bits << 1 & LAST_TEN);
            }
        }
    }

    /** Calls are rejected, except for one probe at the given time. */
    private record Open(AtomicLong probeAt) implements Round {}

    /** Returns the round to report the call to; null if the call must not be made. */
    @Nullable
    Round enter() {
        Round current = round.get();
        return current instanceof Open open && !mayProbe(open) ? null : current;
    }

    private boolean mayProbe(Open open) {
        long now = time.nanoTime();
        long due = open.probeAt.get();
        return now - due >= 0 && open.probeAt.compareAndSet(due, now + LOST.toNanos());
    }

    /** Reports a call that succeeded. Returns whether it closed the breaker. */
    boolean succeeded(Round entered) {
        if (entered instanceof Closed closed) {
            closed.succeed();
            return false;
        }
        return round.compareAndSet(entered, new Closed());
    }

    /** Reports a call that failed. Returns whether it opened the breaker, which was closed before. */
    boolean failed(Round entered) {
        if (entered instanceof Closed closed) {
            return closed.fail() && round.compareAndSet(entered, opened());
        }
        round.compareAndSet(entered, opened());
        return false;
    }

    /** Reports a call that proved nothing about the backend. If it was a probe, another one follows after a pause. */
    void unclear(Round entered) {
        if (entered instanceof Open) {
            round.compareAndSet(entered, opened());
        }
    }

    boolean isOpen() {
        return round.get() instanceof Open;
    }

    void open() {
        round.set(opened());
    }

    private Open opened() {
        return new Open(new AtomicLong(time.nanoTime() + PAUSE.toNanos()));
    }
}
