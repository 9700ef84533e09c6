package io.ratelimit;

import java.util.concurrent.Future;

/** A time source whose next scheduled call overflows the stack of its caller. */
public final class ExhaustedTimeSource implements TimeSource {

    private final ManualTimeSource time;
    private boolean overflowed;

    public ExhaustedTimeSource(ManualTimeSource time) {
        this.time = time;
    }

    @Override
    public long nanoTime() {
        return time.nanoTime();
    }

    @Override
    public Future<?> callAt(long nanos, Runnable call) {
        if (!overflowed) {
            overflowed = true;
            throw new StackOverflowError();
        }
        return time.callAt(nanos, call);
    }
}
