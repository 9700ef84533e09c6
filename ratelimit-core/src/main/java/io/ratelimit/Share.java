package io.ratelimit;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** Tokens of a striped bucket that are set aside for the threads of one stripe. Thread-safe and lock-free. */
final class Share {

    private static final long CLOSED = Level.CLOSED;

    private static final VarHandle START;

    static {
        try {
            START = MethodHandles.lookup().findVarHandle(Share.class, "start", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final Ticks ticks;
    private final long end;
    private volatile long start;
    private long startAtClosing;

    /** The ticks between two moments. */
    Share(Ticks ticks, long start, long end) {
        this.ticks = ticks;
        this.start = start;
        this.end = end;
    }

    /** Takes all of the tokens from here, or none. The clock is read here: it must not be older than this share. */
    boolean take(long tokens, TimeSource time) {
        long now = ticks.at(time.nanoTime());
        long price = ticks.of(tokens);
        for (long seen = start; seen != CLOSED; seen = start) {
            long next = now + Math.max(seen - now, 0) + price;
            if (next - end > 0) {
                return false;
            }
            if (START.weakCompareAndSet(this, seen, next)) {
                return true;
            }
        }
        return false;
    }

    /** Closes it for ever: nobody takes from it any more. For one thread at a time, like {@link #rest}. */
    void close() {
        long seen = (long) START.getAndSet(this, CLOSED);
        startAtClosing = seen == CLOSED ? startAtClosing : seen;
    }

    /** The ticks that were left when it was closed and have not come back to the bucket by themselves. */
    long rest(long nanos) {
        long now = ticks.at(nanos);
        return Math.max(end - now - Math.max(startAtClosing - now, 0), 0);
    }
}
