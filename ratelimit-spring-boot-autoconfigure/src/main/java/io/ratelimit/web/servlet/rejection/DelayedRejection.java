package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * One delayed rejection, kept in an attribute of its request until the container dispatches the request again. Thread-safe.
 *
 * <p>The container dispatches on its own thread, after the first thread has left all filters. No two threads thus use the
 * response at once. The container also reports when the client is gone.
 */
final class DelayedRejection implements AsyncListener {

    private static final String ATTRIBUTE = DelayedRejection.class.getName();
    private static final Log logger = LogFactory.getLog(DelayedRejections.class);

    private enum State {
        WAITING,
        DUE,
        CLAIMED,
        COMPLETE
    }

    private final DelayedRejections rejections;
    private final HttpServletRequest request;
    private final Decision decision;
    private final long decidedAt;
    private final AsyncContext async;
    private final String target;
    private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
    private volatile @Nullable Future<?> timer;

    /**
     * @param rejections notified when this rejection is complete
     * @param request the request as the rejecting filter saw it
     * @param decidedAt the nanoseconds of the time source
     */
    DelayedRejection(
            DelayedRejections rejections,
            HttpServletRequest request,
            Decision decision,
            long decidedAt,
            AsyncContext async) {
        this.rejections = rejections;
        this.request = request;
        this.decision = decision;
        this.decidedAt = decidedAt;
        this.async = async;
        this.target = target(request);
        async.addListener(this);
        request.setAttribute(ATTRIBUTE, this);
    }

    /**
     * Returns the dispatch target of a request: the pattern that selected its servlet, since not every path of a client can
     * be a target. The request never reaches the target, because the filter answers first.
     */
    static String target(HttpServletRequest request) {
        String pattern = request.getHttpServletMapping().getPattern();
        return pattern.startsWith("/") ? pattern : "/" + pattern;
    }

    /** Returns the rejection that the caller must write now, or null if there is none. Each is returned once. */
    static @Nullable DelayedRejection claim(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof DelayedRejection rejection
                        && rejection.state.compareAndSet(State.DUE, State.CLAIMED)
                ? rejection
                : null;
    }

    /** Sets the timer that will call {@link #dispatch}. It is cancelled when the request is complete. */
    void timer(Future<?> timer) {
        this.timer = timer;
        if (state.get() == State.COMPLETE) {
            timer.cancel(false);
        }
    }

    /** Has the container dispatch the request, unless it has done so before. Doesn't block. */
    void dispatch() {
        if (state.compareAndSet(State.WAITING, State.DUE)) {
            try {
                async.dispatch(target);
            } catch (IllegalStateException clientIsGone) {
                logger.debug("A client disconnected before its delayed rejection was written");
                complete();
            }
        }
    }

    /** Completes the rejection without a use of the request, which the container may have reused for another client. */
    private void complete() {
        if (state.getAndSet(State.COMPLETE) != State.COMPLETE) {
            Future<?> timer = this.timer;
            if (timer != null) {
                timer.cancel(false);
            }
            rejections.completed(this);
        }
    }

    HttpServletRequest request() {
        return request;
    }

    /** Returns the decision with its times shortened by the delay, so that they end at the same moments. */
    Decision decision() {
        return decision.after(Duration.ofNanos(Math.max(0, rejections.time().nanoTime() - decidedAt)));
    }

    @Override
    public void onComplete(AsyncEvent event) {
        complete();
    }

    @Override
    public void onError(AsyncEvent event) {
        complete();
    }

    /** Dispatches when the container's timeout ends first, as with a time source that stands still. */
    @Override
    public void onTimeout(AsyncEvent event) {
        dispatch();
    }

    @Override
    public void onStartAsync(AsyncEvent event) {}
}
