package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.context.SmartLifecycle;

/**
 * The rejections that wait for their policies' delay. They hold no thread, and there are at most {@value #MAX_WAITING} at a
 * time; further rejections are written at once. Thread-safe.
 *
 * <p>When the application stops, all of them are written, before the server waits for its active requests.
 */
final class DelayedRejections implements SmartLifecycle {

    /** Each delayed rejection keeps one connection busy, and a server has only some thousands of connections. */
    static final int MAX_WAITING = 1_000;

    /** The container's timeout after the delay, in case the time source makes no call. */
    private static final long GRACE_MILLIS = 30_000;

    /** The time after its dispatch in which a request is complete, unless the container has lost it. */
    private static final long LOST_NANOS = TimeUnit.MINUTES.toNanos(1);

    private static final long STOP_SECONDS = 2;

    private static final Log logger = LogFactory.getLog(DelayedRejections.class);

    private final PolicyResponses responses;
    private final TimeSource time;
    private final ThrottleListener listener;
    private final Semaphore permits = new Semaphore(MAX_WAITING);
    private final Set<DelayedRejection> waiting = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean warned = new AtomicBoolean();
    private volatile boolean running = true;

    /** @param responses the delay of each policy */
    DelayedRejections(PolicyResponses responses, TimeSource time, ThrottleListener listener) {
        this.responses = responses;
        this.time = time;
        this.listener = listener;
    }

    /**
     * Defers the response by the longest delay of the policies that denied the request.
     *
     * @return false if the caller must write the response now
     */
    boolean defer(HttpServletRequest request, Decision decision) {
        long delay = responses.anyDelay() ? delayOf(decision) : 0;
        if (delay == 0 || !running || !isPossible(request) || !permits.tryAcquire()) {
            return false;
        }
        DelayedRejection rejection;
        try {
            // With the server's own response: a wrapper of this moment is finished when the rejection is written.
            AsyncContext async = request.startAsync();
            async.setTimeout(TimeUnit.NANOSECONDS.toMillis(delay) + GRACE_MILLIS);
            rejection = new DelayedRejection(request, decision, time.nanoTime(), async);
        } catch (RuntimeException | Error failure) {
            permits.release();
            throw failure;
        }
        schedule(rejection, delay);
        for (Answer denial : decision.denials()) {
            if (delayOf(denial) > 0) {
                listener.eventOccurred(denial.policy(), ThrottleListener.Event.DELAYED);
            }
        }
        return true;
    }

    private void schedule(DelayedRejection rejection, long delay) {
        waiting.add(rejection);
        rejection.timer(time.callAt(rejection.decidedAt + delay, rejection::dispatch));
        if (!running) {
            rejection.dispatch();
        }
    }

    private long delayOf(Decision decision) {
        long longest = 0;
        for (Answer denial : decision.denials()) {
            longest = Math.max(longest, delayOf(denial));
        }
        return longest;
    }

    private long delayOf(Answer denial) {
        return responses.of(denial.policy()).delayNanos;
    }

    /** Returns false for a request that the application handles asynchronously, for an include, and for an error page. */
    private boolean isPossible(HttpServletRequest request) {
        DispatcherType dispatch = request.getDispatcherType();
        if (request.isAsyncStarted() || dispatch == DispatcherType.INCLUDE || dispatch == DispatcherType.ERROR) {
            return false;
        }
        if (!request.isAsyncSupported()) {
            if (warned.compareAndSet(false, true)) {
                logger.warn("A rejection was written without its rejection-delay, because a filter or servlet of the"
                        + " request doesn't support asynchronous requests. This is logged once");
            }
            return false;
        }
        return request.getServletContext().getRequestDispatcher(DelayedRejection.target(request)) != null;
    }

    /** Returns the number of rejections that are delayed or being written. */
    int waiting() {
        return MAX_WAITING - permits.availablePermits();
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public void start() {
        running = true;
    }

    /** Writes all waiting rejections, and delays no further ones. */
    @Override
    public void stop() {
        running = false;
        waiting.forEach(DelayedRejection::dispatch);
        awaitCompletion();
    }

    /** Waits for the responses to be written, in case the server doesn't stop gracefully. */
    private void awaitCompletion() {
        try {
            if (permits.tryAcquire(MAX_WAITING, STOP_SECONDS, TimeUnit.SECONDS)) {
                permits.release(MAX_WAITING);
            }
        } catch (InterruptedException stopNow) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * One delayed rejection, kept in an attribute of its request until the container dispatches the request again. Thread-safe.
     *
     * <p>The container dispatches on its own thread, after the first thread has left all filters. No two threads thus use the
     * response at once. The container also reports when the client is gone.
     */
    final class DelayedRejection implements AsyncListener {

        private static final String ATTRIBUTE = DelayedRejection.class.getName();

        private enum State {
            WAITING,
            DUE,
            CLAIMED,
            COMPLETE
        }

        private final HttpServletRequest request;
        private final Decision decision;
        private final long decidedAt;
        private final AsyncContext async;
        private final String target;
        private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
        private final AtomicBoolean hasPlace = new AtomicBoolean(true);
        private volatile @Nullable Future<?> timer;

        /**
         * @param request the request as the rejecting filter saw it
         * @param decidedAt the nanoseconds of the time source
         */
        DelayedRejection(HttpServletRequest request, Decision decision, long decidedAt, AsyncContext async) {
            this.request = request;
            this.decision = decision;
            this.decidedAt = decidedAt;
            this.async = async;
            this.target = target(request);
            request.setAttribute(ATTRIBUTE, this);
            async.addListener(this); // from now on the container has this rejection free its place
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

        /** Sets the timer of the next step. It is cancelled when the request is complete. */
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
                timer(time.maintainAt(time.nanoTime() + LOST_NANOS, this::leave));
            }
        }

        /** Completes the rejection without a use of the request, which the container may have reused for another client. */
        private void complete() {
            if (state.getAndSet(State.COMPLETE) != State.COMPLETE) {
                Future<?> timer = this.timer;
                if (timer != null) {
                    timer.cancel(false);
                }
                leave();
            }
        }

        /** Frees the place of this rejection, which is written nevertheless if the container dispatches the request later. */
        private void leave() {
            if (hasPlace.getAndSet(false)) {
                waiting.remove(this);
                permits.release();
            }
        }

        HttpServletRequest request() {
            return request;
        }

        /** Returns the decision with its times shortened by the delay, so that they end at the same moments. */
        Decision decision() {
            return decision.after(Duration.ofNanos(Math.max(0, time.nanoTime() - decidedAt)));
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
}
