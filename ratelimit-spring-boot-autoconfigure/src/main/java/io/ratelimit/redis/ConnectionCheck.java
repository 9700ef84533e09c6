package io.ratelimit.redis;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/**
 * Finds out whether a connection has to be made anew, which it would not by itself: it leads nowhere any more and nobody
 * says so, or it leads to a server that was the master once. Thread-safe.
 *
 * <p>A call that wasn't answered in time may mean that the server is slow. To give it more connections to make wouldn't
 * help it, so a ping decides, which has more time.
 */
final class ConnectionCheck {

    private static final long PATIENCE = Duration.ofMillis(500).toNanos();

    private final Supplier<CompletableFuture<?>> ping;
    private final Runnable renew;
    private final AtomicBoolean pinging = new AtomicBoolean();

    ConnectionCheck(Supplier<CompletableFuture<?>> ping, Runnable renew) {
        this.ping = ping;
        this.renew = renew;
    }

    /** Thinks about a call that failed; takes no time. */
    void failed(BackendException failure) {
        Throwable cause = failure.getCause();
        if (cause != null && RedisFailures.isReadOnly(cause)) {
            renew.run();
        } else if (cause instanceof TimeoutException && pinging.compareAndSet(false, true)) {
            ping();
        }
    }

    private void ping() {
        answer().thenApply(pong -> pong)
                .orTimeout(PATIENCE, TimeUnit.NANOSECONDS)
                .whenComplete((pong, failure) -> {
                    pinging.set(false);
                    if (failure instanceof TimeoutException) {
                        renew.run();
                    }
                });
    }

    /** Where nothing can be sent, that is a failure like any other. */
    private CompletableFuture<?> answer() {
        try {
            return ping.get();
        } catch (RuntimeException unsent) {
            return CompletableFuture.failedFuture(unsent);
        }
    }
}
