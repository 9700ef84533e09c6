package io.ratelimit.web.servlet;

import io.ratelimit.TimeSource;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
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
        Completion completion = new Completion(ledger, request, response);
        open.add(completion);
        schedule();
        return completion;
    }

    private void schedule() {
        if (!scheduled.get() && scheduled.compareAndSet(false, true)) {
            try {
                long due = time.nanoTime() + INTERVAL_NANOS;
                time.maintainAt(due, () -> completeLost(due));
            } catch (RuntimeException | Error failed) {
                scheduled.set(false);
                throw failed;
            }
        }
    }

    private void completeLost(long due) {
        if (time.nanoTime() - due < 0) {
            return; // the clock was closed, and makes its calls early
        }
        scheduled.set(false);
        try {
            open.removeIf(Completion::completeIfLost);
        } finally { // a slot of a store of the application may fail
            if (!open.isEmpty()) {
                schedule();
            }
        }
    }

    /** Completes a request at the end of its asynchronous work. */
    final class Completion implements AsyncListener {

        /** The time that a container without a free thread has to go on with a request whose work has ended or timed out. */
        private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(1);

        private final RequestLedger ledger;
        private final HttpServletRequest request;
        private final HttpServletResponse response;
        private volatile long begun;
        private volatile boolean dispatched;
        private volatile boolean ended;
        private volatile long endSeen;

        Completion(RequestLedger ledger, HttpServletRequest request, HttpServletResponse response) {
            this.ledger = ledger;
            this.request = request;
            this.response = response;
            this.begun = time.nanoTime();
        }

        /** Records that a thread of the container works on the request again. */
        void dispatch() {
            dispatched = true;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            open.remove(this);
            ledger.completeLater(request, response);
        }

        /** Registers again: the container drops listeners when a dispatched request starts asynchronous work again. */
        @Override
        public void onStartAsync(AsyncEvent event) {
            begun = time.nanoTime();
            ended = false;
            dispatched = false;
            event.getAsyncContext().addListener(this);
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            ledger.course().noteTimeout();
        }

        @Override
        public void onError(AsyncEvent event) {
            ledger.course().noteError(event.getThrowable());
            ledger.leave(); // Tomcat doesn't always complete a request whose connection broke after a part of its
            // response
            if (event.getThrowable() instanceof IOException) {
                ledger.settleKnown(request, response);
            }
        }

        /** Completes the request if the container has lost it, and returns whether it has. */
        boolean completeIfLost() {
            boolean lost = isRecycled() || !dispatched && isOverdue(time.nanoTime());
            if (lost) {
                ledger.completeUnread();
            }
            return lost;
        }

        /** Returns whether the container has given the request's object to another request, or to none. */
        private boolean isRecycled() {
            try {
                return RequestLedger.find(request) != ledger;
            } catch (IllegalStateException withoutRequest) {
                return true;
            }
        }

        /** Returns whether the work has ended or timed out, and nothing has followed for long. */
        private boolean isOverdue(long now) {
            long timeoutMillis;
            try {
                timeoutMillis = request.getAsyncContext().getTimeout();
            } catch (IllegalStateException noLongerStarted) {
                return isOverdueSinceItsEnd(now);
            }
            return timeoutMillis > 0 && now - begun - PATIENCE_NANOS > TimeUnit.MILLISECONDS.toNanos(timeoutMillis);
        }

        private boolean isOverdueSinceItsEnd(long now) {
            if (!ended) {
                endSeen = now;
                ended = true;
            }
            return now - endSeen > PATIENCE_NANOS;
        }
    }
}
