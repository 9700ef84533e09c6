package io.ratelimit;

/** {@link System#nanoTime()}, counted from its first use. */
enum SystemTimeSource implements TimeSource {
    INSTANCE;

    private static final long START = System.nanoTime();

    @Override
    public long nanoTime() {
        return System.nanoTime() - START;
    }
}
