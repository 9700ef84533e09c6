package io.ratelimit.remote;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The time that all calls of one request to a bucket store may take together. A thread that serves a request {@link #open
 * opens} and {@link #close closes} the request; other threads belong to the request that is bound to them. A call outside
 * a request has the whole time. Thread-safe.
 *
 * <p>A call has the time that the earlier calls of its request left. Once the time is used up, or a call has failed, the
 * request makes no further calls. The {@linkplain #settling settlements} of a request have the same time once more, since a
 * call that isn't settled counts a wrong cost. Calls that several threads make at the same time take their time once.
 */
public final class Deadline {

    private final TimeSource time;
    private final Duration timeout;
    private final Supplier<@Nullable Request> bound;
    private final ThreadLocal<@Nullable Request> requests = new ThreadLocal<>();

    /** @param timeout the time of a request, and of a call outside a request */
    public Deadline(TimeSource time, Duration timeout) {
        this(time, timeout, () -> null);
    }

    /**
     * @param timeout the time of a request, and of a call outside a request
     * @param bound returns the request to which a thread belongs that hasn't opened one, or null
     */
    public Deadline(TimeSource time, Duration timeout, Supplier<@Nullable Request> bound) {
        this.time = time;
        this.timeout = timeout;
        this.bound = bound;
    }

    /** The time that one request has used. Several threads may serve the request, together or in turn. */
    public static final class Request {
        private long spentNanos;
        private int calls;
        private long busySince;
        private boolean failed;
        private @Nullable Request settlements;
        private final boolean ofWait;

        /** Creates a request that has used no time. */
        public Request() {
            this(false);
        }

        private Request(boolean ofWait) {
            this.ofWait = ofWait;
        }

        /** Returns the time of the settlements. One that failed doesn't prevent others, as it may concern its bucket alone. */
        synchronized Request settlements() {
            settlements = settlements == null ? new Request() : settlements;
            settlements.forgetFailure();
            return settlements;
        }

        private synchronized void forgetFailure() {
            failed = false;
        }

        private synchronized boolean hasFailed() {
            return failed;
        }

        private synchronized long spentNanos(TimeSource time) {
            return calls == 0 ? spentNanos : spentNanos + time.nanoTime() - busySince;
        }

        private synchronized void begin(long now) {
            busySince = calls++ == 0 ? now : busySince;
        }

        private synchronized void end(long now, boolean hasFailed) {
            if (--calls == 0) {
                spentNanos += now - busySince;
            }
            failed |= hasFailed;
        }

        private synchronized void exhaust(long nanos) {
            spentNanos = Math.max(spentNanos, nanos);
        }
    }

    /** A bucket store that ends each call by the deadline itself: a later answer proves that this process is slow. */
    public interface Bounded extends BucketStore {}

    /** Begins or continues a request on this thread. Returns false, and changes nothing, if the thread is within one already. */
    public boolean open(Request request) {
        boolean outermost = requests.get() == null;
        if (outermost) {
            requests.set(request);
        }
        return outermost;
    }

    /** Ends the request of this thread. */
    public void close() {
        requests.remove();
    }

    /** Begins a call that may take the time that is left; the failures of its futures are converted by the function. */
    public Call call(Function<Throwable, BackendException> failures) {
        return call(failures, timeout);
    }

    /** Begins a call that may take the time that is left, but not more than the given one. */
    public Call call(Function<Throwable, BackendException> failures, Duration atMost) {
        long most = Math.min(timeout.toNanos(), atMost.toNanos());
        return new Call(most, Math.min(leftNanos(), most), failures);
    }

    /** Returns the time of a request, and of a call outside a request. */
    Duration timeout() {
        return timeout;
    }

    TimeSource time() {
        return time;
    }

    /** Makes a settlement in the time for all settlements of this request. */
    <T extends @Nullable Object> T settling(Supplier<T> settlement) {
        Request opened = requests.get();
        Request request = current();
        if (request == null) {
            return settlement.get();
        }
        requests.set(request.settlements());
        try {
            return settlement.get();
        } finally {
            if (opened == null) {
                requests.remove();
            } else {
                requests.set(opened);
            }
        }
    }

    private @Nullable Request current() {
        Request opened = requests.get();
        return opened == null ? bound.get() : opened;
    }

    /** Returns whether a call of this request has failed, so that no further call may be made. */
    boolean hasFailed() {
        Request request = current();
        return request != null && request.hasFailed();
    }

    /** Returns the nanoseconds that a call may take now; zero or less if no call may be made. */
    long leftNanos() {
        Request request = current();
        return request == null ? timeout.toNanos() : timeout.toNanos() - request.spentNanos(time);
    }

    /**
     * Waits for a call of another request, at most for a quarter of the time that is left. An interrupt ends the wait. On a
     * thread without a request this begins one, until {@link #closeAwaiting}, so that a call that follows has what is left.
     */
    void awaitOther(Future<?> call) {
        if (current() == null) {
            requests.set(new Request(true));
        }
        long left = leftNanos();
        Request request = began(time.nanoTime());
        try {
            call.get(left / 4, TimeUnit.NANOSECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | ExecutionException unknown) {
            // this thread makes a call of its own
        } finally {
            ended(request, time.nanoTime(), false, false);
        }
    }

    /**
     * Waits for the reply to a call that threads share, for the time that is left, also if the thread is interrupted. If there
     * is none, this request makes no further calls.
     */
    void awaitShared(Future<?> reply) {
        long end = System.nanoTime() + (hasFailed() ? 0 : leftNanos());
        Request request = began(time.nanoTime());
        boolean interrupted = false;
        boolean late = false;
        while (!late && !reply.isDone()) {
            try {
                reply.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            } catch (InterruptedException interrupt) {
                interrupted = true;
            } catch (TimeoutException | ExecutionException over) {
                late = true;
            }
        }
        ended(request, time.nanoTime(), false, late);
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends the request that a wait has begun on this thread, if one has. */
    void closeAwaiting() {
        Request request = requests.get();
        if (request != null && request.ofWait) {
            requests.remove();
        }
    }

    /** Records that a call begins, and returns its request for {@link #ended}. */
    @Nullable
    Request began(long now) {
        Request request = current();
        if (request != null) {
            request.begin(now);
        }
        return request;
    }

    /** @param congested whether the request must not make further calls, although none has failed */
    void ended(@Nullable Request request, long now, boolean failed, boolean congested) {
        if (request != null) {
            request.end(now, failed);
            if (congested) {
                request.exhaust(timeout.toNanos());
            }
        }
    }

    /**
     * One call with the moment by which it ends, independent of the timeouts of the connection. For one thread.
     *
     * <p>When a reply is late, is the backend slow, or this process? A call may have waited for a free connection, lost
     * races against other calls, or had its command queued behind others while all processors were busy. None of these is
     * a failure of the backend, and a circuit breaker that counted them would switch off a healthy backend in every flood.
     * The backend is late only if it had half of the timeout. Example: the timeout is 100 ms, and a call gets a connection
     * after 60 ms and no reply in the remaining 40 ms. This call was {@linkplain CongestedException congested}.
     */
    public static final class Call {

        /** A thread that wakes later than it should by this part of the timeout was delayed, like the whole process. */
        private static final int DELAY_DIVISOR = 5;

        private final long timeout;
        private final long began;
        private final long end;
        private final Function<Throwable, BackendException> failures;
        private long inProcess;

        private Call(long timeout, long left, Function<Throwable, BackendException> failures) {
            this.timeout = timeout;
            this.began = System.nanoTime();
            this.end = began + left;
            this.failures = failures;
        }

        /** Begins a call that belongs to no request. */
        public static Call within(Duration timeout, Function<Throwable, BackendException> failures) {
            return new Call(timeout.toNanos(), timeout.toNanos(), failures);
        }

        /** Returns the nanoseconds that are left; below zero after the deadline. */
        public long leftNanos() {
            return end - System.nanoTime();
        }

        /**
         * Waits for a permit, such as that for a connection, but leaves a part of the time for the backend. Returns whether
         * there is a permit.
         */
        public boolean acquire(Semaphore permits) {
            if (permits.tryAcquire()) {
                return true;
            }
            long since = System.nanoTime();
            long forBackend = (end - began) / 4;
            boolean acquired = uninterrupted(nanos -> permits.tryAcquire(nanos - forBackend, TimeUnit.NANOSECONDS));
            spentInProcess(since);
            return acquired;
        }

        /** Returns when the call began, as {@link System#nanoTime}. */
        public long began() {
            return began;
        }

        /** Records that the time since the given moment wasn't spent on a backend that didn't answer. */
        public void spentInProcess(long since) {
            inProcess += System.nanoTime() - since;
        }

        /** Waits for the reply to a command that was written to the connection at once. */
        public <T> T await(CompletableFuture<T> reply) {
            return await(reply, () -> began);
        }

        /**
         * Waits for the reply to a command. A reply that is late is cancelled, but the backend may have executed the
         * command nevertheless.
         *
         * @param sentAt returns when the command was written to the connection; 0 if it wasn't yet
         * @throws BackendException if the command failed, or its reply is late
         * @throws CongestedException if the reply is late because of this process
         */
        public <T> T await(CompletableFuture<T> reply, LongSupplier sentAt) {
            return uninterrupted(nanos -> result(reply, nanos, sentAt));
        }

        private <T> T result(CompletableFuture<T> reply, long nanos, LongSupplier sentAt) throws InterruptedException {
            long start = System.nanoTime();
            try {
                return reply.get(nanos, TimeUnit.NANOSECONDS);
            } catch (TimeoutException late) {
                reply.cancel(true);
                throw late(start, nanos, sentAt.getAsLong(), late);
            } catch (ExecutionException | CompletionException failed) {
                throw failures.apply(failed);
            }
        }

        private BackendException late(long start, long nanos, long sentAt, Throwable late) {
            long now = System.nanoTime();
            long unsent = sentAt == 0 ? now - start : Math.max(sentAt - start, 0);
            boolean delayed = now - start - nanos > timeout / DELAY_DIVISOR;
            boolean backendHadHalf = now - began - inProcess - unsent >= timeout / 2;
            return backendHadHalf && !delayed
                    ? new BackendException("no answer in time", late)
                    : new CongestedException("a command waited in this process until the deadline", late);
        }

        /** Returns the failure of a command that was ended because it took too long, on the thread that waited for it. */
        public BackendException late(Throwable cause) {
            return late(System.nanoTime(), leftNanos(), began, cause);
        }

        private interface Wait<T> {
            T get(long nanos) throws InterruptedException;
        }

        /**
         * Waits until the deadline, also if the thread is interrupted, and restores the interrupt afterwards. The wait is
         * short, and an interrupt is no failure of the backend.
         */
        private <T> T uninterrupted(Wait<T> wait) {
            boolean interrupted = false;
            try {
                while (true) {
                    try {
                        return wait.get(Math.max(leftNanos(), 0));
                    } catch (InterruptedException interrupt) {
                        interrupted = true;
                    }
                }
            } finally {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    /**
     * A call that this process didn't make in time, or made too late for an answer. Reasons are that no connection was free,
     * that other calls always wrote first, or that the command waited in this process. It proves nothing about the backend.
     */
    public static final class CongestedException extends BackendException {

        private static final long serialVersionUID = 1;

        /** Creates the exception; the message contains nothing that a client sent. */
        public CongestedException(String message, @Nullable Throwable cause) {
            super(message, cause);
        }
    }
}
