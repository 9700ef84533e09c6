package io.ratelimit.redis;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/**
 * Finds out whether a connection has to be renewed because it doesn't notice that it is useless. The other end may have
 * disappeared without closing it, or the server may no longer be the master. Thread-safe.
 *
 * <p>A late answer may mean that the server is slow. More connections wouldn't help a slow server, so a ping with more
 * time decides.
 */
final class ConnectionCheck {

    private static final long PING_TIMEOUT = Duration.ofMillis(500).toNanos();

    private final Supplier<CompletableFuture<?>> ping;
    private final Runnable renew;
    private final AtomicBoolean pinging = new AtomicBoolean();

    ConnectionCheck(Supplier<CompletableFuture<?>> ping, Runnable renew) {
        this.ping = ping;
        this.renew = renew;
    }

    /** Checks the connection after a call that failed. It doesn't block. */
    void failed(BackendException failure) {
        Throwable cause = failure.getCause();
        if (cause != null && RedisFailures.isReadOnly(cause)) {
            renew.run();
        } else if (cause instanceof TimeoutException && pinging.compareAndSet(false, true)) {
            ping();
        }
    }

    private void ping() {
        reply().thenApply(pong -> pong)
                .orTimeout(PING_TIMEOUT, TimeUnit.NANOSECONDS)
                .whenComplete((pong, failure) -> {
                    pinging.set(false);
                    if (failure instanceof TimeoutException) {
                        renew.run();
                    }
                });
    }

    /** Returns the reply to a ping. A ping that can't be sent is a failure like any other. */
    private CompletableFuture<?> reply() {
        try {
            return ping.get();
        } catch (RuntimeException unsent) {
            return CompletableFuture.failedFuture(unsent);
        }
    }
}
