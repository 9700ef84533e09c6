package io.ratelimit;

import java.util.concurrent.Future;

/** A time source that also counts the library's own upkeep as waiting. */
public record UpkeepTimeSource(ManualTimeSource time) implements TimeSource {

    @Override
    public long nanoTime() {
        return time.nanoTime();
    }

    @Override
    public void parkUntil(long nanos) throws InterruptedException {
        time.parkUntil(nanos);
    }

    @Override
    public Future<?> callAt(long nanos, Runnable call) {
        return time.callAt(nanos, call);
    }
}
