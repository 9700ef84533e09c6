package io.ratelimit.web.servlet;

import io.ratelimit.TimeSource;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.TimeUnit;

/** Completes a request at the end of its asynchronous work. */
final class Completion implements AsyncListener {

    /** The time that a container without a free thread has to go on with a request whose work has ended or timed out. */
    private static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final RequestLedger ledger;
    private final HttpServletRequest request;
    private final HttpServletResponse response;
    private final OpenRequests open;
    private final TimeSource time;
    private volatile long begun;
    private volatile boolean dispatched;
    private volatile boolean ended;
    private volatile long endSeen;

    Completion(
            RequestLedger ledger,
            HttpServletRequest request,
            HttpServletResponse response,
            OpenRequests open,
            TimeSource time) {
        this.ledger = ledger;
        this.request = request;
        this.response = response;
        this.open = open;
        this.time = time;
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
        ledger.leave(); // Tomcat doesn't always complete a request whose connection broke after a part of its response
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
