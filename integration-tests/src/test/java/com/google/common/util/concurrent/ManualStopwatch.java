package com.google.common.util.concurrent;

import io.ratelimit.ManualTimeSource;
import java.time.Duration;

/** Gives Guava's limiter the clock of a test. It has no public way to do so, hence the package. */
public final class ManualStopwatch extends RateLimiter.SleepingStopwatch {

    private final ManualTimeSource time;

    private ManualStopwatch(ManualTimeSource time) {
        this.time = time;
    }

    /** Returns what {@link RateLimiter#create(double)} does, on the given clock. */
    public static RateLimiter limiter(double permitsPerSecond, ManualTimeSource time) {
        return RateLimiter.create(permitsPerSecond, new ManualStopwatch(time));
    }

    @Override
    protected long readMicros() {
        return time.nanoTime() / 1000;
    }

    @Override
    protected void sleepMicrosUninterruptibly(long micros) {
        time.advance(Duration.ofNanos(micros * 1000));
    }
}
