package io.ratelimit;

/** {@link System#nanoTime()}, counted from when this class was first used. */
enum SystemTimeSource implements TimeSource {
    INSTANCE;

    private static final long START = System.nanoTime();

    @Override
    public long nanoTime() {
        return System.nanoTime() - START;
    }
}
