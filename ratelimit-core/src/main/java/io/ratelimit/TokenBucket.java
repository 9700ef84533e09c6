package io.ratelimit;

import static io.ratelimit.Check.check;

import io.ratelimit.Reservation.Taken;
import java.io.InputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;

/**
 * A token bucket: calls take tokens from it, time brings them back, and what isn't there can't be taken, but may be
 * waited for.
 *
 * <p>In any interval of length D it grants at most capacity + rate × (D + s), not counting what is given back, where s
 * is one clock step (1 ns, 1 µs for rates that no nanosecond fits) or one period for interval refill. It denies only
 * when the tokens are not there, and a denial changes nothing. A grant counts at the moment at which its call read the
 * clock; one that waits, when it is due. Over a change of rate or capacity the greater one counts. Thread-safe,
 * and taking is lock-free; a call reads the clock once, again only where it would be denied because others took
 * meanwhile.
 *
 * <p>Who waits is served in the order of arrival. Tokens are taken ahead, so the wait is known before it begins, is
 * refused at once where it is too long, and nobody who comes later goes before.
 */
public sealed class TokenBucket permits StripedBucket {

    private final TimeSource time;
    private volatile Level level;

    TokenBucket(BucketSpec spec, TimeSource time) {
        this.time = time;
        long nanos = time.nanoTime();
        this.level = new Level(Ticks.of(spec, nanos), nanos);
    }

    /** A full bucket on the machine's clock. */
    public static TokenBucket of(BucketSpec spec) {
        return of(spec, TimeSource.system());
    }

    /** A full bucket on the given clock. */
    public static TokenBucket of(BucketSpec spec, TimeSource time) {
        return new TokenBucket(spec, time);
    }

    /** Like {@link #striped(BucketSpec, int, TimeSource)}, on the machine's clock. */
    public static TokenBucket striped(BucketSpec spec, int stripes) {
        return striped(spec, stripes, TimeSource.system());
    }

    /**
     * A full bucket for many threads that take a few of very many tokens each: it sets tokens aside for so many stripes,
     * and a thread that calls {@link #tryAcquire(long)} takes from its own stripe's. All else asks the whole, one call at
     * a time, and is slower than with {@link #of(BucketSpec) one that isn't striped}. Measured on two cores, it is about
     * three times as fast with two threads and more while calls are allowed, and up to twice as slow where most are denied.
     *
     * <p>It never grants more than one bucket, and denies only when all stripes together haven't the tokens; the last ones
     * are gathered from them, for any cost up to the capacity. To a lone thread it answers exactly as one bucket. Where
     * several take, it may have fewer tokens than one bucket would: those set aside for a stripe come back no sooner for
     * not being used. What is set aside is never more than a quarter of the capacity.
     *
     * @param stripes from 1 to 256; about as many as there are processors
     */
    public static TokenBucket striped(BucketSpec spec, int stripes, TimeSource time) {
        return new StripedBucket(spec, stripes, time);
    }

    /**
     * Takes all of the tokens at once, or none. Allocates nothing.
     *
     * @return false if they are not there, or never will be because they are more than the capacity: {@link #decide}
     *     tells the two apart
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public boolean tryAcquire(long tokens) {
        checkPositive(tokens);
        long taken = level.tryTake(tokens, time);
        while (taken == Level.CLOSED) {
            taken = level.tryTake(tokens, time);
        }
        return taken >= 0;
    }

    /**
     * Takes all of the tokens, and waits until they are there, or takes none: parks once, and not at all if they won't
     * be there in time.
     *
     * @param maxWait the longest wait; above 365 days the same as 365 days
     * @return false at once if the wait would be longer, or the tokens are more than the capacity: {@link #reserve} tells
     *     the two apart
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     * @throws InterruptedException if the thread is or gets interrupted; the tokens are given back
     */
    public boolean tryAcquire(long tokens, Duration maxWait) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        Reservation reservation = reserve(tokens, maxWait);
        if (!reservation.decision().allowed()) {
            return false;
        }
        try {
            reservation.await();
            return true;
        } catch (InterruptedException interrupted) {
            reservation.cancel();
            throw interrupted;
        }
    }

    /**
     * Like {@link #tryAcquire(long, Duration)}, but holds no thread. To cancel the future, or to complete it exceptionally
     * as {@link CompletableFuture#orTimeout} does, gives the tokens back. It completes on a thread of the common pool, of
     * which there may be only one: what holds a thread wants an executor, as {@link CompletableFuture#thenRunAsync} takes.
     *
     * @return the decision when the tokens are due, or at once if none were taken
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     */
    public CompletableFuture<Decision> acquireAsync(long tokens, Duration maxWait) {
        Reservation reservation = reserve(tokens, maxWait);
        Decision decision = reservation.decision();
        if (decision.waitNanos() == 0) {
            return CompletableFuture.completedFuture(decision);
        }
        CompletableFuture<Decision> due = new CompletableFuture<>();
        Future<?> call = time.callAt(reservation.dueNanos(), () -> complete(due, reservation));
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
     * Takes all of the tokens at once, or none, and says what is left or how long to wait.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public Decision decide(long tokens) {
        return take(tokens, 0, Decision::of);
    }

    /**
     * Takes all of the tokens, those that are not there yet ahead of time: they are due later.
     *
     * @return what was taken, if the cost is not above the capacity, nor the wait above 365 days
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public Reservation reserve(long tokens) {
        return reserve(tokens, Waiting.LONGEST);
    }

    /**
     * Takes all of the tokens, those that are not there yet ahead of time if they come soon enough, or none.
     *
     * @param maxWait the longest wait; above 365 days the same as 365 days
     * @throws IllegalArgumentException if {@code tokens} is below 1 or the wait is negative
     */
    public Reservation reserve(long tokens, Duration maxWait) {
        return new Reservation(this, take(tokens, Waiting.cut(maxWait).toNanos(), Taken::of));
    }

    <T> T take(long tokens, long maxWaitNanos, Level.Result<T> result) {
        checkPositive(tokens);
        T taken = level.take(tokens, maxWaitNanos, time, result);
        while (taken == null) {
            taken = level.take(tokens, maxWaitNanos, time, result);
        }
        return taken;
    }

    /**
     * Puts tokens back that were taken and not used. A full bucket stays full. While others wait in line none comes back,
     * since they may stand on these: cancel a {@link Reservation} to have what they don't.
     *
     * @throws IllegalArgumentException if {@code tokens} is below 1
     */
    public void giveBack(long tokens) {
        checkPositive(tokens);
        while (!level.giveBack(tokens, time)) {
            Thread.onSpinWait();
        }
    }

    void giveBack(Taken taken) {
        boolean back;
        do {
            Level now = level;
            long position = now.ticks() == taken.ticks() ? taken.position() : Decision.Answer.UNKNOWN;
            back = now.giveBack(taken.cost(), position, time);
        } while (!back);
    }

    /**
     * Changes size and rate while it runs. The tokens that are there are kept, cut to the new capacity; the time until now
     * counts at the old rate. Who waits keeps his moment, and nobody who comes later goes before.
     */
    public synchronized void reconfigure(BucketSpec spec) {
        Level before = level;
        if (!before.ticks().spec().equals(spec)) {
            level = before.reopen(Ticks.of(spec, time.nanoTime()), time);
        }
    }

    /** The bucket as it is now. */
    public BucketSnapshot snapshot() {
        while (true) {
            Level now = level;
            long nanos = time.nanoTime();
            long missing = now.missing(nanos);
            if (missing != Level.CLOSED) {
                return BucketSnapshot.of(now.ticks(), missing, nanos);
            }
            Thread.onSpinWait();
        }
    }

    /**
     * A stream that writes to the other one no faster than this bucket allows: each byte costs a token, and the writer
     * waits for them. Closing it closes the other.
     */
    public OutputStream shape(OutputStream out) {
        return shape(out, Waiting.LONGEST);
    }

    /**
     * A stream that writes to the other one no faster than this bucket allows: each byte costs a token, and the writer
     * waits for them, piece by piece. Pieces are no larger than the bucket, nor than what comes in ten milliseconds, so
     * that streams may share a bucket. One that is full in less than a millisecond makes its rate only where many bytes
     * are written at once; it is never faster.
     *
     * <p>Writing throws an IOException where a piece would have to wait too long, and an
     * {@link java.io.InterruptedIOException}, with the thread's flag set again, where it is interrupted while it waits.
     * Nothing of that piece is written then, nor are its tokens gone; the message says how much was.
     *
     * @param maxWait the longest wait of a piece; above 365 days the same as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public OutputStream shape(OutputStream out, Duration maxWait) {
        return new ShapedOutputStream(out, new Shaper(this, maxWait));
    }

    /**
     * A stream that reads from the other one no faster than this bucket allows: each byte costs a token, and the reader
     * waits for them. Closing it closes the other.
     */
    public InputStream shape(InputStream in) {
        return shape(in, Waiting.LONGEST);
    }

    /**
     * A stream that reads from the other one no faster than this bucket allows, like
     * {@link #shape(OutputStream, Duration)}. What has come is paid for before it is handed out, and what hasn't come
     * costs nothing: neither the end, nor waiting for a slow source. So the source is asked for one piece ahead of its
     * tokens. Bytes whose tokens couldn't be waited for are kept for the next call.
     *
     * @param maxWait the longest wait of a piece; above 365 days the same as 365 days
     * @throws IllegalArgumentException if the wait is negative
     */
    public InputStream shape(InputStream in, Duration maxWait) {
        return new ShapedInputStream(in, new Shaper(this, maxWait));
    }

    TimeSource time() {
        return time;
    }

    Level level() {
        return level;
    }

    static void checkPositive(long tokens) {
        check(tokens >= 1, "tokens", "at least 1", tokens);
    }
}
