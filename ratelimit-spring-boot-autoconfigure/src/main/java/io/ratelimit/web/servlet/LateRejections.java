package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.context.SmartLifecycle;

/**
 * Puts refusals off, as late as their policies say, without holding a thread: at most 1,000 at a time, the others are
 * answered at once. All are when the application stops, before the server waits for its requests. Thread-safe.
 */
public final class LateRejections implements SmartLifecycle {

    /** Each keeps a connection busy, of which there are thousands and not more. */
    static final int MOST = 1_000;

    /** How long the container waits for a time source that doesn't call, before it answers all the same. */
    private static final long GRACE_MILLIS = 30_000;

    private static final long STOP_SECONDS = 2;

    private static final Log logger = LogFactory.getLog(LateRejections.class);

    private final Map<String, Long> delayNanos = new HashMap<>();
    private final TimeSource time;
    private final Semaphore places = new Semaphore(MOST);
    private final Set<LateRejection> waiting = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean warned = new AtomicBoolean();
    private volatile boolean running = true;

    /**
     * @param delays of refusals by the names of their policies; none for others
     */
    public LateRejections(Map<String, RejectionDelay> delays, TimeSource time) {
        delays.forEach((policy, delay) -> {
            if (!delay.isNone()) {
                delayNanos.put(policy, delay.time().toNanos());
            }
        });
        this.time = time;
    }

    /** Whether no policy has a delay. */
    public boolean isEmpty() {
        return delayNanos.isEmpty();
    }

    /** Puts the answer off for the longest delay of the violated policies. If it doesn't, the caller is to answer. */
    boolean putOff(HttpServletRequest request, Decision decision) {
        long delay = isEmpty() ? 0 : delayOf(decision);
        if (delay == 0 || !running || !isPossible(request) || !places.tryAcquire()) {
            return false;
        }
        AsyncContext async;
        try {
            // With the response as the server made it: what wraps it now is done with it before the answer is written.
            async = request.startAsync();
        } catch (RuntimeException | Error impossible) {
            places.release();
            throw impossible;
        }
        putOff(async, request, decision, delay);
        return true;
    }

    /** Whether refusals by a policy are put off, as long as that is possible. */
    boolean delays(ThrottlePolicy policy) {
        return delayNanos.containsKey(policy.name());
    }

    private void putOff(AsyncContext async, HttpServletRequest request, Decision decision, long delay) {
        async.setTimeout(TimeUnit.NANOSECONDS.toMillis(delay) + GRACE_MILLIS);
        long now = time.nanoTime();
        LateRejection late = new LateRejection(request, decision, now, async, this::end);
        waiting.add(late);
        late.alarm(time.callAt(now + delay, late::call));
        if (!running) {
            late.call();
        }
    }

    private void end(LateRejection late) {
        waiting.remove(late);
        places.release();
    }

    private long delayOf(Decision decision) {
        long longest = 0;
        for (Answer violation : decision.violations()) {
            longest =
                    Math.max(longest, delayNanos.getOrDefault(violation.policy().name(), 0L));
        }
        return longest;
    }

    /** Not for a request that the application answers asynchronously itself, nor for a part or the end of an answer. */
    private boolean isPossible(HttpServletRequest request) {
        DispatcherType dispatch = request.getDispatcherType();
        if (request.isAsyncStarted() || dispatch == DispatcherType.INCLUDE || dispatch == DispatcherType.ERROR) {
            return false;
        }
        if (!request.isAsyncSupported()) {
            warn("a filter or servlet that the request went through doesn't support asynchronous requests");
            return false;
        }
        return request.getServletContext().getRequestDispatcher(LateRejection.target(request)) != null;
    }

    private void warn(String reason) {
        if (warned.compareAndSet(false, true)) {
            logger.warn(
                    "A refusal was answered at once in spite of its rejection-delay, and so will others be: " + reason);
        }
    }

    /** How many are put off now, or being answered. */
    int waiting() {
        return MOST - places.availablePermits();
    }

    /** The decision as it is to be told now. */
    Decision decision(LateRejection late) {
        return late.decision(time.nanoTime());
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public void start() {
        running = true;
    }

    /** Has all that wait answered, and puts none off any more. */
    @Override
    public void stop() {
        running = false;
        waiting.forEach(LateRejection::call);
        awaitAnswers();
    }

    /** For a server that doesn't stop gracefully. */
    private void awaitAnswers() {
        try {
            if (places.tryAcquire(MOST, STOP_SECONDS, TimeUnit.SECONDS)) {
                places.release(MOST);
            }
        } catch (InterruptedException hurry) {
            Thread.currentThread().interrupt();
        }
    }
}
