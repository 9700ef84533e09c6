package io.ratelimit;

/** Time that jumps to where a thread wants to wait until, and a little further, as sleepers do: for one thread. */
final class JumpingTimeSource implements TimeSource {

    private final long oversleepNanos;
    private long nanos;
    private long parks;

    JumpingTimeSource(long oversleepNanos) {
        this.oversleepNanos = oversleepNanos;
    }

    @Override
    public long nanoTime() {
        return nanos;
    }

    @Override
    public void parkUntil(long moment) {
        nanos = Math.max(nanos, moment) + oversleepNanos;
        parks++;
    }

    long parks() {
        return parks;
    }
}
