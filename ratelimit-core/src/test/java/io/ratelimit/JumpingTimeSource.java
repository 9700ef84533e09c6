package io.ratelimit;

/** A clock for one thread that jumps to the end of each wait and a little further, as sleeping threads do. */
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
