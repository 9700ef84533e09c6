package io.ratelimit.redis;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BackendListener;
import io.ratelimit.BackendState;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.CircuitBreaker.Round;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Calls of Redis that never take long and never throw: within the request's deadline, and not at all while Redis is away.
 * Thread-safe.
 */
final class GuardedCalls implements Backend {

    private static final Log logger = LogFactory.getLog(FailoverBucketStore.class);

    private final TimeSource time;
    private final RequestDeadline deadline;
    private final CircuitBreaker breaker;
    private final BackendWatch watch;
    private final Supplier<?> probe;
    private final List<BackendListener> listeners = new CopyOnWriteArrayList<>();

    /** @param probe takes from a bucket that is nobody's */
    GuardedCalls(TimeSource time, RequestDeadline deadline, Supplier<?> probe) {
        this.time = time;
        this.probe = probe;
        this.deadline = deadline;
        this.breaker = new CircuitBreaker(time);
        this.watch = new BackendWatch(time);
    }

    @Override
    public String name() {
        return "Redis";
    }

    @Override
    public BackendState state() {
        return watch.state();
    }

    @Override
    public void probe() {
        call(probe);
    }

    @Override
    public void listen(BackendListener listener) {
        listeners.add(listener);
    }

    /** Notes that it failed before anybody called: calls are kept away until a probe finds it back. */
    void failedAtStart(BackendException failure) {
        if (failure.isMisconfiguration()) {
            watch.misconfigured(failure);
        } else {
            breaker.open();
            watch.down(failure, breaker::isOpen);
        }
    }

    /** What the call returned; null if it failed, or wasn't made. It is made once at most. */
    <T> @Nullable T call(Supplier<T> call) {
        Round round = deadline.isOver() ? null : breaker.enter();
        return round == null ? null : call(call, round);
    }

    private <T> @Nullable T call(Supplier<T> call, Round round) {
        long began = time.nanoTime();
        long allowed = deadline.left();
        BackendException failure = null;
        T result = null;
        try {
            result = call.get();
        } catch (BackendException failed) {
            failure = failed;
        } catch (RuntimeException bug) {
            failure = unexpected(bug);
        } catch (Error fatal) {
            breaker.failed(round);
            throw fatal;
        }
        long took = time.nanoTime() - began;
        boolean late = took > allowed;
        deadline.spent(began, failure != null || late);
        report(round, failure, late);
        tell(took, failure != null || late);
        return result;
    }

    private void tell(long nanos, boolean failed) {
        for (BackendListener listener : listeners) {
            listener.called(nanos, failed);
        }
    }

    /** Of ours, or of a library's: its message may have what a client sent, so only where it comes from is told. */
    private static BackendException unexpected(RuntimeException bug) {
        String type = bug.getClass().getName();
        if (logger.isDebugEnabled()) {
            IllegalStateException place = new IllegalStateException(type);
            place.setStackTrace(bug.getStackTrace());
            logger.debug("A call of Redis failed as no call should", place);
        }
        return new BackendException(type, bug, true);
    }

    /** A misconfigured server answers, and quickly: there is no reason to keep other calls away from it. */
    private void report(Round round, @Nullable BackendException failure, boolean late) {
        if (failure != null && failure.isMisconfiguration()) {
            breaker.succeeded(round);
            watch.misconfigured(failure);
        } else if (failure != null || late) {
            BackendException why = failure != null ? failure : new BackendException("it answers too late");
            if (breaker.failed(round)) {
                watch.down(why, breaker::isOpen);
            } else {
                watch.failed(why);
            }
        } else {
            if (breaker.succeeded(round)) {
                watch.back();
            }
            watch.succeeded();
        }
    }
}
