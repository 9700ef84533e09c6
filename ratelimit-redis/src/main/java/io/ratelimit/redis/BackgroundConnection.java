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
 * A connection that is opened in the background when it is first requested. If that fails, a request half a second later
 * tries again. An open connection is kept until a caller renews it. Thread-safe.
 */
final class BackgroundConnection<T> {

    private static final long PAUSE = Duration.ofMillis(500).toNanos();

    /** An attempt that takes longer doesn't prevent another attempt, but its connection is used if it succeeds. */
    private static final long STUCK = Duration.ofSeconds(1).toNanos();

    /** Closes a replaced connection later, as calls may still be on their way. */
    private static final Executor CLOSER = CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS);

    private final Supplier<T> connect;
    private final Consumer<T> close;
    private volatile @Nullable T connection;
    private @Nullable Attempt<T> latest;
    private boolean renewsAgain;
    private int closed;

    private record Attempt<T>(CompletableFuture<T> connecting, long begunAt) {

        /** Returns whether a request for the connection needs no other attempt. */
        boolean isUsable() {
            return !isOver() || connecting.isDone() && !connecting.isCompletedExceptionally();
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

    /** @throws BackendException if the connection isn't open yet */
    T get() {
        T open = connection;
        return open != null ? open : resultOf(present().connecting);
    }

    private static <T> T resultOf(CompletableFuture<T> connecting) {
        if (!connecting.isDone()) {
            throw new BackendException("there is no connection to Redis yet");
        }
        try {
            return connecting.join();
        } catch (CompletionException failed) {
            throw RedisFailures.of(failed);
        }
    }

    /**
     * Returns the result of the present attempt to connect, which may have failed just now. Begins one if there is none. The
     * attempt goes on if the result is cancelled.
     */
    CompletableFuture<T> begin() {
        return present().connecting.copy();
    }

    private synchronized Attempt<T> present() {
        Attempt<T> attempt = latest;
        return attempt != null && attempt.isUsable() ? attempt : attempt();
    }

    /**
     * Begins to open another connection. Once open, it replaces the present one, which is closed. If an attempt is being made
     * and fails after half a second or more, another one follows.
     */
    synchronized void renew() {
        Attempt<T> attempt = latest;
        if (attempt == null || attempt.isOver()) {
            attempt();
        } else {
            renewsAgain = true;
        }
    }

    private Attempt<T> attempt() {
        int before = closed;
        CompletableFuture<T> connecting = RedisConnections.inBackground(connect).thenApply(fresh -> use(fresh, before));
        Attempt<T> attempt = new Attempt<>(connecting, System.nanoTime());
        latest = attempt;
        renewsAgain = false;
        connecting.whenComplete((fresh, failure) -> ended(attempt));
        return attempt;
    }

    private synchronized void ended(Attempt<T> attempt) {
        if (renewsAgain && attempt == latest && attempt.isOver() && !attempt.isUsable()) {
            attempt();
        }
    }

    /** Closes the connection, and each that is being opened. A later request opens another. */
    synchronized void close() {
        closed++;
        latest = null;
        T old = connection;
        connection = null;
        if (old != null) {
            close.accept(old);
        }
    }

    private synchronized T use(T fresh, int before) {
        if (closed != before) {
            close.accept(fresh);
            return fresh;
        }
        T old = connection;
        connection = fresh;
        if (old != null) {
            CLOSER.execute(() -> close.accept(old));
        }
        return fresh;
    }
}
