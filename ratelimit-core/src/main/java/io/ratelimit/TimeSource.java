package io.ratelimit;

/** Where throttling takes the time from: a clock that never goes back and tells no date. */
@FunctionalInterface
public interface TimeSource {

    /**
     * The nanoseconds since some fixed moment. Only differences mean something, and comparisons go by subtraction;
     * but buckets that refill at intervals have their ticks at whole periods since that moment.
     */
    long nanoTime();

    /** The machine's monotonic clock, counted from its first use, which is about the start of the process. */
    static TimeSource system() {
        return SystemTimeSource.INSTANCE;
    }
}
