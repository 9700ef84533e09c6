package io.ratelimit;

import static io.ratelimit.Check.check;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Time that stands still until it is told to move: for tests of limits, which then need no sleep. Starts at zero.
 * Thread-safe.
 */
public final class ManualTimeSource implements TimeSource {

    private final AtomicLong nanos = new AtomicLong();

    @Override
    public long nanoTime() {
        return nanos.get();
    }

    /**
     * Moves the time forward.
     *
     * @throws IllegalArgumentException if the step is negative
     */
    public void advance(Duration step) {
        check(!step.isNegative(), "step", "zero or more", step);
        nanos.addAndGet(step.toNanos());
    }
}
