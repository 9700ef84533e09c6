package io.ratelimit.redis;

import io.ratelimit.TimeSource;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How long the calls of one request may wait for Redis, all together. Who serves a request {@link #open opens} and closes
 * it on the thread that does; without that each call has the whole time for itself. Thread-safe.
 *
 * <p>A call gets what the earlier ones of its request left, but never less than a tenth: a request that asks a hundred
 * times and is answered quickly each time has used up more than its time, and nothing is wrong. Once a call has failed,
 * nothing of the request waits for Redis any more.
 */
public final class RequestDeadline {

    private static final int LEAST_SHARE = 10;

    private final TimeSource time;
    private final long nanos;
    private final ThreadLocal<@Nullable Spent> requests = new ThreadLocal<>();

    public RequestDeadline(TimeSource time, Duration timeout) {
        this.time = time;
        this.nanos = timeout.toNanos();
    }

    private static final class Spent {
        private long nanos;
        private boolean failed;
    }

    /** Begins a request on this thread; false if it is within one already, which then goes on. */
    public boolean open() {
        boolean outermost = requests.get() == null;
        if (outermost) {
            requests.set(new Spent());
        }
        return outermost;
    }

    /** Ends the request that was begun on this thread. */
    public void close() {
        requests.remove();
    }

    /** Whether nothing of this request may wait for Redis any more. */
    boolean isOver() {
        Spent spent = requests.get();
        return spent != null && spent.failed;
    }

    /** How many nanoseconds a call may take now. */
    long left() {
        Spent spent = requests.get();
        return spent == null ? nanos : Math.max(nanos - spent.nanos, nanos / LEAST_SHARE);
    }

    /** Notes a call that began at that moment and is over. */
    void spent(long began, boolean failed) {
        Spent spent = requests.get();
        if (spent != null) {
            spent.nanos += time.nanoTime() - began;
            spent.failed |= failed;
        }
    }
}
