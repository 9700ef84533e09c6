package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Take.Receipt;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/**
 * A token bucket: calls take tokens from it, and time brings them back.
 *
 * <ul>
 *   <li>{@link #tryAcquire(long)} and {@link #decide} answer at once; {@code decide} also returns the retry time and
 *       what is left. {@code tryAcquire} allocates nothing.
 *   <li>{@link #tryAcquire(long, Duration)} and {@link #acquire(long, Duration)} wait for tokens that come in time,
 *       {@link #acquire(long)} as long as it takes. {@link #acquireAsync} waits without holding a thread.
 *   <li>{@link #reserve(long)} takes tokens ahead, for callers that wait in their own way or may cancel.
 *   <li>{@link #giveBack} returns unused tokens, {@link #snapshot} shows the bucket, {@link #reconfigure} changes its
 *       rate and capacity.
 *   <li>{@link #shape(OutputStream)} limits the bytes of a stream.
 * </ul>
 *
 * <p>In any interval of length D the bucket grants at most capacity + rate × (D + s), not counting tokens that are
 * given back. Here s is one clock step (1 ns, or 1 µs for rates that no nanosecond fits), or one period for interval
 * refill. It denies only if the tokens are not available, and a denial changes nothing. A grant counts at the moment at
 * which its call read the clock; the grant of a waiting call counts when it is due. Across changes of the spec the
 * greatest rate, capacity and rate × s count.
 *
 * <p>Waiting calls are served in the order of arrival. Tokens are taken ahead, so a call's wait is known before it
 * begins. A wait that is too long is denied at once, and later calls never overtake a waiting one.
 *
 * <p>Thread-safe, and taking is lock-free. A call reads the clock once, and again only if it would be denied because
 * other calls took meanwhile.
 */
public sealed class TokenBucket permits StripedBucket {

    private final TimeSource time;
    private volatile BucketState state;

    TokenBucket(BucketSpec spec, TimeSource time) {
        this.time = time;
        long nanos = time.nanoTime();
        this.state = new BucketState(TickScale.of(spec, nanos, time), nanos);
    }

    /** Returns a full bucket on the machine's clock. */
    public static TokenBucket of(BucketSpec spec) {
        return of(spec, TimeSource.system());
    }

    /** Returns a full bucket on the given clock. */
    public static TokenBucket of(BucketSpec spec, TimeSource time) {
        return new TokenBucket(spec, time);
    }

    /**
     * Returns a striped bucket on the machine's clock: see {@link #striped(BucketSpec, int, TimeSource)}.
     *
     * @throws IllegalArgumentException if {@code stripes} is not between 1 and 256
     */
    public static TokenBucket striped(BucketSpec spec, int stripes) {
        return striped(spec, stripes, TimeSource.system());
    }

    /**
     * Returns a full bucket for many threads that each take a few of very many tokens. It sets tokens aside for each
     * stripe, and {@link #tryAcquire(long)} takes from the stripe of its thread. Every other method needs the whole
     * bucket: these calls run one at a time, and are slower than with {@link #of(BucketSpec) an ordinary bucket}.
     * Measured on two cores, a striped bucket is about three times as fast with two or more threads while calls are
     * allowed. Where most calls are denied it is up to twice as slow.
     *
     * <p>It never grants more than one bucket, and denies only if all stripes together lack the tokens. The last tokens
     * are gathered from the stripes, for any cost up to the capacity. To a lone thread it answers exactly as one
     * bucket. With several threads it may have fewer tokens than one bucket would: tokens set aside for a stripe come
     * back no sooner if the stripe doesn't use them. At most a quarter of the capacity is set aside.
     *
     * @param stripes from 1 to 256; about as many as there are processors
     * @throws IllegalArgumentException if {@code stripes} is outside that range
     */
    public static TokenBucket striped(BucketSpec spec, int stripes, TimeSource time) {
        return new StripedBucket(spec, stripes, time);
    }

    /**
     * Takes all of the tokens and returns true, or takes none and returns false. Allocates nothing.
     *
     * @return false if the tokens are not available, or never can be because they exceed the capacity; {@link #decide}
     *     distinguishes the two
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public boolean tryAcquire(long tokens) {
        checkPositive(tokens);
        long taken = state.tryTake(tokens, time);
        while (taken == BucketState.CLOSED) {
            taken = state.tryTake(tokens, time);
        }
        return taken >= 0;
    }

    /**
     * Takes all of the tokens and allows the call, or takes none and denies it.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public Decision decide(long tokens) {
        return take(
                tokens,
                0,
                (state, cost, taken, nanos, maxWaitNanos, returned) ->
                        new Decision(state, cost, taken, nanos, maxWaitNanos));
    }

    /**
     * Takes all of the tokens and allows the call, if necessary after waiting for them; or takes none and denies it at
     * once, because they don't come in time. Parks the thread at most once.
     *
     * @param maxWait the longest wait; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     * @throws InterruptedException if the thread is or gets interrupted; the tokens are given back
     */
    public Decision acquire(long tokens, Duration maxWait) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        Reservation reservation = reserve(tokens, maxWait);
        if (reservation.decision().allowed()) {
            try {
                reservation.await();
            } catch (InterruptedException | RuntimeException | Error failed) {
                reservation.cancel();
                throw failed;
            }
        }
        return reservation.decision();
    }

    /**
     * Takes all of the tokens, after waiting for them as long as it takes, at most 365 days.
     *
     * @return the decision, which denies only more tokens than the bucket can hold, and a wait above 365 days
     * @throws IllegalArgumentException if {@code tokens} is below 1
     * @throws InterruptedException if the thread is or gets interrupted; the tokens are given back
     */
    public Decision acquire(long tokens) throws InterruptedException {
        return acquire(tokens, ThrottlePolicy.LONGEST_WAIT);
    }

    /**
     * Like {@link #acquire(long, Duration)}, but returns only whether the call is allowed.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     * @throws InterruptedException if the thread is or gets interrupted; the tokens are given back
     */
    public boolean tryAcquire(long tokens, Duration maxWait) throws InterruptedException {
        return acquire(tokens, maxWait).allowed();
    }

    /**
     * Like {@link #acquire(long, Duration)}, but holds no thread. If the future is cancelled, or completed exceptionally as by
     * {@link CompletableFuture#orTimeout}, the tokens are given back. The future completes on a thread of the common
     * pool, which may have only one. Run blocking work on an executor, as {@link CompletableFuture#thenRunAsync}
     * takes it.
     *
     * @param maxWait the longest wait; above 365 days it counts as 365 days
     * @return the decision when the tokens are due, or at once if none were taken. It completes exceptionally with a
     *     {@link CancellationException} if the time source is closed before
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     */
    public CompletableFuture<Decision> acquireAsync(long tokens, Duration maxWait) {
        Reservation reservation = reserve(tokens, maxWait);
        Decision decision = reservation.decision();
        if (decision.waitNanos() == 0) {
            return CompletableFuture.completedFuture(decision);
        }
        CompletableFuture<Decision> due = new CompletableFuture<>();
        Future<?> call;
        try {
            call = time.callAt(reservation.dueNanos(), () -> complete(due, reservation));
        } catch (RuntimeException | Error failed) {
            reservation.cancel();
            throw failed;
        }
        due.whenComplete((sameDecision, failure) -> {
            call.cancel(false);
            if (failure != null) {
                reservation.cancel();
            }
        });
        return due;
    }

    private void complete(CompletableFuture<Decision> due, Reservation reservation) {
        if (reservation.delay().isZero()) {
            due.complete(reservation.decision());
        } else {
            due.completeExceptionally(new CancellationException("the time source was closed, or called early"));
        }
    }

    /**
     * Takes all of the tokens, ahead of time if they are not available yet; they are due later.
     *
     * @return the reservation; no tokens were taken if they exceed the capacity, or the wait would exceed 365 days
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public Reservation reserve(long tokens) {
        return reserve(tokens, ThrottlePolicy.LONGEST_WAIT);
    }

    /**
     * Takes all of the tokens, ahead of time if they come within the longest wait, or takes none.
     *
     * @param maxWait the longest wait; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     */
    public Reservation reserve(long tokens, Duration maxWait) {
        return take(
                tokens,
                ThrottlePolicy.atMostLongest(maxWait).toNanos(),
                (state, cost, taken, nanos, maxWaitNanos, returned) ->
                        new Reservation(this, state, cost, taken, nanos, maxWaitNanos, returned));
    }

    <T> T take(long tokens, long maxWaitNanos, Take.Result<T> result) {
        checkPositive(tokens);
        T taken = state.take(tokens, maxWaitNanos, time, result);
        while (taken == null) {
            taken = state.take(tokens, maxWaitNanos, time, result);
        }
        return taken;
    }

    /**
     * Returns tokens that were taken just before and not used. A full bucket stays full. While calls wait, no tokens
     * come back: cancel a {@link Reservation} to return the tokens that no waiting call depends on.
     *
     * <p>The bucket can't find out when these tokens were taken. Tokens that are returned late come on top of those
     * that time has brought: any interval then may have as many more grants as were returned in it. Cancel a
     * {@link Reservation} for tokens that are held for a while.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public void giveBack(long tokens) {
        checkPositive(tokens);
        giveBack(tokens, null);
    }

    void giveBack(long tokens, @Nullable Receipt receipt) {
        while (state.giveBack(tokens, 0, receipt, 0, time) == BucketState.CLOSED) {
            Thread.onSpinWait();
        }
    }

    /**
     * Changes the rate and the capacity. The tokens in the bucket are kept, cut to the new capacity; the time until now
     * counts at the old rate. Waiting callers keep their turn; later callers never overtake them.
     */
    public synchronized void reconfigure(BucketSpec spec) {
        BucketState before = state;
        if (!before.scale().spec().equals(spec)) {
            long nanos = time.nanoTime();
            state = BucketConversion.convert(before, TickScale.of(spec, nanos, time), nanos, time);
        }
    }

    /** Returns the bucket as it is now. */
    public BucketSnapshot snapshot() {
        while (true) {
            BucketState current = state;
            long nanos = time.nanoTime();
            long missing = current.missing(nanos);
            if (missing != BucketState.CLOSED) {
                return BucketSnapshot.of(current.scale(), missing, nanos);
            }
            Thread.onSpinWait();
        }
    }

    /** Like {@link #shape(OutputStream, Duration)}, with a longest wait of 365 days. */
    public OutputStream shape(OutputStream out) {
        return shape(out, ThrottlePolicy.LONGEST_WAIT);
    }

    /**
     * Returns a stream that writes to another stream no faster than this bucket allows: each byte costs a token, and
     * the writer waits for the tokens. Closing it closes the other stream.
     *
     * <p>Bytes pass piece by piece. A piece is no larger than the bucket, nor than the tokens of ten milliseconds, so
     * that streams can share a bucket. A bucket that is full in less than a millisecond reaches its rate only if many
     * bytes are written at once; it is never faster.
     *
     * <p>Writing throws an {@link java.io.IOException} if a piece would have to wait too long. It throws an
     * {@link java.io.InterruptedIOException}, and sets the thread's interrupt flag again, if the thread is interrupted
     * while it waits. In both cases nothing of that piece is written and it costs no tokens. The message contains the
     * number of bytes written before.
     *
     * @param maxWait the longest wait of a piece; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public OutputStream shape(OutputStream out, Duration maxWait) {
        return new Shaper.Output(out, new Shaper(this, maxWait));
    }

    /** Like {@link #shape(InputStream, Duration)}, with a longest wait of 365 days. */
    public InputStream shape(InputStream in) {
        return shape(in, ThrottlePolicy.LONGEST_WAIT);
    }

    /**
     * Returns a stream that reads from another stream no faster than this bucket allows, as
     * {@link #shape(OutputStream, Duration)} writes. Closing it closes the other stream.
     *
     * <p>Bytes are paid for after they were received and before they are returned. The end of the stream and waiting
     * for a slow source therefore cost nothing, and the source is read one piece ahead. Bytes whose tokens don't come in time are
     * kept for the next call.
     *
     * @param maxWait the longest wait of a piece; above 365 days it counts as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public InputStream shape(InputStream in, Duration maxWait) {
        return new Shaper.Input(in, new Shaper(this, maxWait));
    }

    TimeSource time() {
        return time;
    }

    BucketState state() {
        return state;
    }

    static void checkPositive(long tokens) {
        check(tokens >= 1, "tokens", "at least 1", tokens);
    }
}
