package io.ratelimit.web.servlet;

import io.ratelimit.TimeSource;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The asynchronous requests that aren't complete. Once a second it completes those that the container has lost: none of their
 * listeners is called any more, and they would hold their slots for ever. Tomcat 11 loses requests in two ways:
 *
 * <ul>
 *   <li>The application's first failed write falls into the moment in which the request's own thread has left all filters.
 *       Tomcat then recycles the request at once.
 *   <li>A late event of a timeout of the connection's previous request takes the processor of this one. Tomcat then never
 *       dispatches, completes or recycles the request.
 * </ul>
 *
 * <p>Thread-safe.
 */
final class OpenRequests {

    private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final TimeSource time;
    private final Set<Completion> open = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean scheduled = new AtomicBoolean();

    OpenRequests(TimeSource time) {
        this.time = time;
    }

    /** Returns the listener of a request that has begun asynchronous work. */
    Completion open(RequestLedger ledger, HttpServletRequest request, HttpServletResponse response) {
        Completion completion = new Completion(ledger, request, response, this, time);
        open.add(completion);
        schedule();
        return completion;
    }

    void remove(Completion request) {
        open.remove(request);
    }

    private void schedule() {
        if (!scheduled.get() && scheduled.compareAndSet(false, true)) {
            time.maintainAt(time.nanoTime() + INTERVAL_NANOS, this::completeLost);
        }
    }

    private void completeLost() {
        scheduled.set(false);
        open.removeIf(Completion::completeIfLost);
        if (!open.isEmpty()) {
            schedule();
        }
    }
}
