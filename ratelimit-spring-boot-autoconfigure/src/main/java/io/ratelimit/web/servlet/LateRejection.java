package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * A refusal that is answered later: kept in an attribute of its request, until the container dispatches that once more.
 * The container does so on a thread of its own and when the thread that refused has left all filters, so that nobody
 * else touches the response; and it tells when there is nobody to be answered any more.
 */
final class LateRejection implements AsyncListener {

    private static final String ATTRIBUTE = LateRejection.class.getName();
    private static final Log logger = LogFactory.getLog(LateRejection.class);

    private enum State {
        WAITING,
        DUE,
        ANSWERED,
        OVER
    }

    private final HttpServletRequest request;
    private final Decision decision;
    private final long decidedAt;
    private final AsyncContext async;
    private final String target;
    private final Consumer<LateRejection> whenOver;
    private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
    private volatile @Nullable Future<?> alarm;

    /**
     * @param request as whoever refused saw it
     * @param decidedAt the nanoseconds of the time source
     * @param whenOver is told once that the request is complete, or nobody waits for it any more
     */
    LateRejection(
            HttpServletRequest request,
            Decision decision,
            long decidedAt,
            AsyncContext async,
            Consumer<LateRejection> whenOver) {
        this.request = request;
        this.decision = decision;
        this.decidedAt = decidedAt;
        this.async = async;
        this.target = target(request);
        this.whenOver = whenOver;
        async.addListener(this);
        request.setAttribute(ATTRIBUTE, this);
    }

    /** The one that whoever asks has to answer now. */
    static @Nullable LateRejection take(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof LateRejection late
                        && late.state.compareAndSet(State.DUE, State.ANSWERED)
                ? late
                : null;
    }

    void alarm(Future<?> alarm) {
        this.alarm = alarm;
        if (state.get() == State.OVER) {
            alarm.cancel(false);
        }
    }

    /** Has the container dispatch the request, if it hasn't yet. Holds nobody up. */
    void call() {
        if (state.compareAndSet(State.WAITING, State.DUE)) {
            try {
                async.dispatch(target);
            } catch (IllegalStateException gone) {
                logger.debug("A client was gone before it was told that it is refused");
                end();
            }
        }
    }

    /** Leaves the request alone: it may be another client's by now. */
    private void end() {
        if (state.getAndSet(State.OVER) != State.OVER) {
            Future<?> set = alarm;
            if (set != null) {
                set.cancel(false);
            }
            whenOver.accept(this);
        }
    }

    HttpServletRequest request() {
        return request;
    }

    /**
     * The decision as it is to be told now: what was to come has come nearer, so that the moments stay what they were.
     */
    Decision decision(long nanos) {
        return told(decision, Math.max(0, nanos - decidedAt));
    }

    private static Decision told(Decision decision, long later) {
        return new Decision(
                decision.outcome(),
                decision.remaining(),
                nearer(decision.retryNanos(), later),
                decision.waitNanos(),
                nearer(decision.nextTokenNanos(), later),
                nearer(decision.resetNanos(), later),
                decision.answers().stream()
                        .map(answer -> answer.with(told(answer.decision(), later)))
                        .toList());
    }

    /** Zero has a meaning of its own: never, or already. */
    private static long nearer(long nanos, long later) {
        return nanos == 0 ? 0 : Math.max(1, nanos - later);
    }

    /**
     * Where a request is dispatched to: the pattern by which its servlet was found, for a path that a client made up may
     * be none that can be dispatched to. Nobody gets there, as the filter answers.
     */
    static String target(HttpServletRequest request) {
        String pattern = request.getHttpServletMapping().getPattern();
        return pattern.startsWith("/") ? pattern : "/" + pattern;
    }

    @Override
    public void onComplete(AsyncEvent event) {
        end();
    }

    @Override
    public void onError(AsyncEvent event) {
        end();
    }

    /** The time source didn't call in time, as when it stands still. */
    @Override
    public void onTimeout(AsyncEvent event) {
        call();
    }

    @Override
    public void onStartAsync(AsyncEvent event) {}
}
