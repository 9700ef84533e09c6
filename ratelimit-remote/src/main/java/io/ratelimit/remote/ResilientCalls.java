package io.ratelimit.remote;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.CircuitBreaker.Round;
import io.ratelimit.remote.Deadline.CongestedException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Calls of a backend that never throw an exception. A call is made only within the deadline of its request, and only while
 * the circuit breaker permits it. Thread-safe.
 */
final class ResilientCalls implements Backend {

    private static final Log logger = LogFactory.getLog(FailoverBucketStore.class);

    private final String name;
    private final TimeSource time;
    private final Deadline deadline;
    private final boolean bounded;
    private final Supplier<?> probe;
    private final CircuitBreaker breaker;
    private final BackendHealth health;
    private final List<Backend.Listener> listeners = new CopyOnWriteArrayList<>();

    /**
     * @param bounded whether calls end by the deadline themselves; then a late answer doesn't count as a failure
     * @param probe takes from a bucket of no policy
     */
    ResilientCalls(String name, Deadline deadline, boolean bounded, Supplier<?> probe) {
        this.name = name;
        this.time = deadline.time();
        this.deadline = deadline;
        this.bounded = bounded;
        this.probe = probe;
        this.breaker = new CircuitBreaker(time);
        this.health = new BackendHealth(name, time);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Backend.State state() {
        return health.state();
    }

    /** Has time of its own: a failed call of the request that asks must not count as a failed probe. */
    @Override
    public boolean probe() {
        return deadline.settling(() -> call(probe) != null);
    }

    @Override
    public void addListener(Backend.Listener listener) {
        listeners.add(listener);
    }

    /** Records a failure before the first call. An outage opens the breaker, until a probe succeeds. */
    void failedAtStart(BackendException failure) {
        if (failure.isMisconfiguration()) {
            health.misconfigured(failure);
        } else {
            breaker.open();
            health.down(failure, breaker::isOpen);
        }
    }

    /** Answers in place of a call that returned nothing. */
    interface Fallback<T> {

        /** @param congested whether the reason is this process, and the backend may well be healthy */
        T answer(boolean congested);
    }

    /** Makes a call, once at most. Returns its result; null if it failed or wasn't made. */
    <T> @Nullable T call(Supplier<T> call) {
        Optional<T> none = Optional.empty();
        return call(() -> Optional.of(call.get()), congested -> none).orElse(null);
    }

    /** Makes a call that returns nothing, once at most. Returns false if it failed or wasn't made. */
    boolean run(Runnable call) {
        Supplier<Boolean> made = () -> {
            call.run();
            return true;
        };
        return call(made, congested -> false);
    }

    /** Makes a call, once at most. Returns its result; the fallback's answer if it failed or wasn't made. */
    <T> T call(Supplier<T> call, Fallback<T> fallback) {
        if (deadline.hasFailed()) {
            return fallback.answer(false);
        }
        if (deadline.leftNanos() <= 0) {
            return fallback.answer(true);
        }
        Round round = breaker.enter();
        return round == null ? fallback.answer(false) : call(call, round, fallback);
    }

    private <T> T call(Supplier<T> call, Round round, Fallback<T> fallback) {
        long began = time.nanoTime();
        long allowed = deadline.leftNanos();
        Deadline.Request request = deadline.began(began);
        BackendException failure = null;
        @Nullable T result = null;
        try {
            result = call.get();
        } catch (BackendException failed) {
            failure = failed;
        } catch (RuntimeException bug) {
            failure = unexpected(bug);
        } catch (Error fatal) {
            boolean congested = fatal instanceof VirtualMachineError;
            deadline.ended(request, time.nanoTime(), !congested, congested);
            ended(round, fatal);
            throw fatal;
        }
        long now = time.nanoTime();
        long nanos = now - began;
        boolean late = !bounded && nanos > allowed;
        boolean congested = failure instanceof CongestedException;
        deadline.ended(request, now, (failure != null || late) && !congested, congested);
        ended(round, failure, late, nanos);
        return result != null ? result : fallback.answer(congested);
    }

    /**
     * Starts a call that belongs to no request; the caller ends it if its reply is late. Returns null if the circuit breaker
     * prevents it.
     *
     * @param failures converts a failure of a call that began at a moment of {@link System#nanoTime}
     */
    <T> @Nullable CompletableFuture<T> start(
            Supplier<CompletableFuture<T>> call, BiFunction<Throwable, Long, BackendException> failures) {
        Round round = breaker.enter();
        if (round == null) {
            return null;
        }
        long began = time.nanoTime();
        long systemBegan = System.nanoTime();
        CompletableFuture<T> reply = reply(call, round);
        Started<T> started = new Started<>(failure -> failures.apply(failure, systemBegan));
        started.whenComplete((result, failure) -> {
            reply.cancel(true); // if the caller has ended the call
            ended(round, (BackendException) failure, false, time.nanoTime() - began);
        });
        reply.whenComplete((result, failure) -> {
            if (failure == null) {
                started.complete(result);
            } else {
                started.completeExceptionally(failure);
            }
        });
        return started;
    }

    private <T> CompletableFuture<T> reply(Supplier<CompletableFuture<T>> call, Round round) {
        try {
            return call.get();
        } catch (BackendException failed) {
            return CompletableFuture.failedFuture(failed);
        } catch (RuntimeException bug) {
            return CompletableFuture.failedFuture(unexpected(bug));
        } catch (Error fatal) {
            ended(round, fatal);
            throw fatal;
        }
    }

    /** A want of stack or memory proves nothing about the backend: clients may choose how deep a call is. */
    private void ended(Round round, Error fatal) {
        if (fatal instanceof VirtualMachineError) {
            breaker.unclear(round);
        } else {
            record(round, new BackendException(fatal.getClass().getName(), fatal), false);
        }
    }

    /** A started call. Its caller sees a failure as it is judged: as one of the backend, or of this process. */
    private static final class Started<T> extends CompletableFuture<T> {

        private final Function<Throwable, BackendException> failures;

        Started(Function<Throwable, BackendException> failures) {
            this.failures = failures;
        }

        @Override
        public boolean completeExceptionally(Throwable failure) {
            return !isDone() && super.completeExceptionally(failures.apply(failure));
        }
    }

    private void ended(Round round, @Nullable BackendException failure, boolean late, long nanos) {
        if (failure instanceof CongestedException congestion) {
            breaker.unclear(round);
            health.congested(congestion);
        } else {
            record(round, failure, late);
        }
        notifyListeners(nanos, failure != null || late);
    }

    private void notifyListeners(long nanos, boolean failed) {
        for (Backend.Listener listener : listeners) {
            try {
                listener.callCompleted(nanos, failed);
            } catch (StackOverflowError overflow) { // the next call may have more stack
            } catch (RuntimeException | LinkageError | AssertionError broken) {
                remove(listener, broken);
            }
        }
    }

    private void remove(Backend.Listener listener, Throwable broken) {
        if (listeners.remove(listener)) {
            logger.error(
                    "The Backend.Listener " + listener.getClass().getName() + " failed and is not called again",
                    place(broken));
        }
    }

    private BackendException unexpected(RuntimeException bug) {
        logger.debug("A call of " + name + " failed with an unexpected exception", place(bug));
        return new BackendException(bug.getClass().getName(), bug, true);
    }

    /** Returns the place of a failure for the log: the message of the exception may contain what a client sent. */
    private static Throwable place(Throwable failure) {
        Throwable place = new IllegalStateException(failure.getClass().getName());
        place.setStackTrace(failure.getStackTrace());
        return place;
    }

    /** A misconfigured backend answers, and quickly, so it doesn't open the breaker for other calls. */
    private void record(Round round, @Nullable BackendException failure, boolean late) {
        if (failure != null && failure.isMisconfiguration()) {
            if (breaker.succeeded(round)) {
                health.recovered();
            }
            health.misconfigured(failure);
        } else if (failure != null || late) {
            BackendException reason = failure != null ? failure : new BackendException("its answers are late");
            if (breaker.failed(round)) {
                health.down(reason, breaker::isOpen);
            } else {
                health.failed(reason);
            }
        } else {
            if (breaker.succeeded(round)) {
                health.recovered();
            }
            health.succeeded();
        }
    }
}
