package io.ratelimit.web.servlet.rejection;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottleListener;
import io.ratelimit.TimeSource;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
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

    private static final long STOP_SECONDS = 2;

    private static final Log logger = LogFactory.getLog(DelayedRejections.class);

    private final PolicyResponses responses;
    private final TimeSource time;
    private final ThrottleListener listener;
    private final Semaphore permits = new Semaphore(MAX_WAITING);
    private final Set<DelayedRejection> waiting = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean warned = new AtomicBoolean();
    private volatile boolean running = true;

    /**
     * @param responses the delay of each policy
     * @param listener is notified of delayed rejections
     */
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
        AsyncContext async;
        try {
            // With the server's own response: a wrapper of this moment is finished when the rejection is written.
            async = request.startAsync();
        } catch (RuntimeException | Error failure) {
            permits.release();
            throw failure;
        }
        schedule(async, request, decision, delay);
        for (Answer denial : decision.denials()) {
            if (delayOf(denial) > 0) {
                listener.eventOccurred(denial.policy(), ThrottleListener.Event.DELAYED);
            }
        }
        return true;
    }

    private void schedule(AsyncContext async, HttpServletRequest request, Decision decision, long delay) {
        async.setTimeout(TimeUnit.NANOSECONDS.toMillis(delay) + GRACE_MILLIS);
        long now = time.nanoTime();
        DelayedRejection rejection = new DelayedRejection(this, request, decision, now, async);
        waiting.add(rejection);
        rejection.timer(time.callAt(now + delay, rejection::dispatch));
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

    /** Makes the place of a rejection free again. */
    void completed(DelayedRejection rejection) {
        waiting.remove(rejection);
        permits.release();
    }

    TimeSource time() {
        return time;
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
}
