package io.ratelimit.redis;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A connection that is made in the background: when it is first asked for, and where that fails again, not before half a
 * second has passed, as long as somebody asks. Once made, it is its own affair. Thread-safe.
 */
final class BackgroundConnection<T> {

    private static final long PAUSE = Duration.ofMillis(500).toNanos();

    private final Supplier<T> connect;
    private volatile @Nullable T made;
    private @Nullable Attempt<T> latest;

    private record Attempt<T>(CompletableFuture<T> connecting, long begunAt) {}

    BackgroundConnection(Supplier<T> connect) {
        this.connect = connect;
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

    private T ofAttempt(CompletableFuture<T> connecting) {
        if (!connecting.isDone()) {
            throw new BackendException("there is no connection to Redis yet");
        }
        try {
            T connection = connecting.join();
            made = connection;
            return connection;
        } catch (CompletionException failed) {
            throw RedisFailures.of(failed);
        }
    }

    /** The attempt to connect that is under way, or has just failed. Whoever has time may wait for it. */
    synchronized CompletableFuture<T> begin() {
        Attempt<T> attempt = latest;
        long now = System.nanoTime();
        if (attempt == null || attempt.connecting.isCompletedExceptionally() && now - attempt.begunAt >= PAUSE) {
            attempt = new Attempt<>(RedisConnections.inBackground(connect), now);
            latest = attempt;
        }
        return attempt.connecting;
    }
}
