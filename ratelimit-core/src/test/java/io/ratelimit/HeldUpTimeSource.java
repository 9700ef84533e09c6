package io.ratelimit;

import java.time.Duration;

/** A clock that holds its reader up: other work runs after the time was read and before the reader gets it. */
final class HeldUpTimeSource implements TimeSource {

    private long nanos;
    private Runnable meanwhile = () -> {};

    HeldUpTimeSource(Duration start) {
        this.nanos = start.toNanos();
    }

    void holdUpNextReader(Duration time, Runnable work) {
        meanwhile = () -> {
            nanos += time.toNanos();
            work.run();
        };
    }

    @Override
    public long nanoTime() {
        long read = nanos;
        Runnable work = meanwhile;
        meanwhile = () -> {};
        work.run();
        return read;
    }
}
