package io.ratelimit.redis;

import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Keeps calls from a backend that fails, and lets one through now and then to see whether it is back. Opens when half of
 * the last ten calls failed. Thread-safe and lock-free.
 *
 * <p>Who wants to call {@link #enter enters}, and then says how it went. What is said of an earlier round counts for
 * nothing: a call that began before the breaker opened must not close it again.
 */
final class CircuitBreaker {

    /** How long it keeps all calls away before it lets one try. */
    static final Duration PAUSE = Duration.ofMillis(500);

    private static final int FAILURES = 5;
    private static final long LAST_TEN = (1 << 10) - 1;

    private final TimeSource time;
    private final AtomicReference<Round> round = new AtomicReference<>(new Closed());

    CircuitBreaker(TimeSource time) {
        this.time = time;
    }

    /** The time between two changes of the breaker: who called within it says so. */
    sealed interface Round {}

    /** Calls go through; the bits are the last results, the latest lowest, with a one for each failure. */
    private record Closed(AtomicLong results) implements Round {

        Closed() {
            this(new AtomicLong());
        }

        boolean fails() {
            long last = results.updateAndGet(before -> before << 1 & LAST_TEN | 1);
            return Long.bitCount(last) >= FAILURES;
        }

        void succeeds() {
            if (results.get() != 0) {
                results.updateAndGet(before -> before << 1 & LAST_TEN);
            }
        }
    }

    /** Calls are kept away, but for one when the time has come. */
    private record Open(long probeAt, AtomicBoolean probed) implements Round {}

    /** What to report to after the call; null if it must not be made. */
    @Nullable
    Round enter() {
        Round current = round.get();
        return current instanceof Open open && !mayProbe(open) ? null : current;
    }

    private boolean mayProbe(Open open) {
        return time.nanoTime() - open.probeAt >= 0 && open.probed.compareAndSet(false, true);
    }

    /** Whether the backend is back by this. */
    boolean succeeded(Round entered) {
        if (entered instanceof Closed closed) {
            closed.succeeds();
            return false;
        }
        return round.compareAndSet(entered, new Closed());
    }

    /** Whether calls are kept away from now on, and were not before. */
    boolean failed(Round entered) {
        if (entered instanceof Closed closed) {
            return closed.fails() && round.compareAndSet(entered, opened());
        }
        round.compareAndSet(entered, opened());
        return false;
    }

    /** Whether calls are kept away, but for one at times. */
    boolean isOpen() {
        return round.get() instanceof Open;
    }

    /** Keeps calls away from now on. */
    void open() {
        round.set(opened());
    }

    private Open opened() {
        return new Open(time.nanoTime() + PAUSE.toNanos(), new AtomicBoolean());
    }
}
