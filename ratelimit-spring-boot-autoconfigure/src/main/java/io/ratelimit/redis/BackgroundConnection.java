package io.ratelimit.redis;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A connection that is made in the background: when it is first asked for, and where that fails again, not before half a
 * second has passed, as long as somebody asks. Once made, it is its own affair until somebody wants it made anew.
 * Thread-safe.
 */
final class BackgroundConnection<T> {

    private static final long PAUSE = Duration.ofMillis(500).toNanos();

    /** Nobody counts any more on an attempt that takes so long, but if it succeeds after all that is as good. */
    private static final long STUCK = Duration.ofSeconds(1).toNanos();

    /** When another one is there, calls may still be on their way. */
    private static final Executor LATER = CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS);

    private final Supplier<T> connect;
    private final Consumer<T> close;
    private volatile @Nullable T made;
    private @Nullable Attempt<T> latest;

    private record Attempt<T>(CompletableFuture<T> connecting, long begunAt) {

        boolean failed() {
            return connecting.isCompletedExceptionally() && age() >= PAUSE;
        }

        boolean isOver() {
            return age() >= (connecting.isDone() ? PAUSE : STUCK);
        }

        private long age() {
            return System.nanoTime() - begunAt;
        }
    }

    BackgroundConnection(Supplier<T> connect, Consumer<T> close) {
        this.connect = connect;
        this.close = close;
    }

    /**
     * The connection.
     *
     * @throws BackendException if there is none yet
     */
    T get() {
        T known = made;
        return known != null ? known : ofAttempt(begin());
    }

    private static <T> T ofAttempt(CompletableFuture<T> connecting) {
        if (!connecting.isDone()) {
            throw new BackendException("there is no connection to Redis yet");
        }
        try {
            return connecting.join();
        } catch (CompletionException failed) {
            throw RedisFailures.of(failed);
        }
    }

    /** The attempt to connect that is under way, or has just failed. Whoever has time may wait for it. */
    synchronized CompletableFuture<T> begin() {
        Attempt<T> known = latest;
        boolean counts = known != null && !known.failed() && (known.connecting.isDone() || !known.isOver());
        return known != null && counts ? known.connecting : attempt().connecting;
    }

    /** Makes another one, which is used once it is there; the one that there is is closed then. */
    synchronized void renew() {
        Attempt<T> attempt = latest;
        if (attempt == null || attempt.isOver()) {
            attempt();
        }
    }

    private Attempt<T> attempt() {
        CompletableFuture<T> connecting = RedisConnections.inBackground(connect).thenApply(this::use);
        Attempt<T> attempt = new Attempt<>(connecting, System.nanoTime());
        latest = attempt;
        return attempt;
    }

    private synchronized T use(T fresh) {
        T old = made;
        made = fresh;
        if (old != null) {
            LATER.execute(() -> close.accept(old));
        }
        return fresh;
    }
}
