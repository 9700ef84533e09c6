package io.ratelimit.redis;

import io.ratelimit.BackendException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The moment by which all Redis work of one request ends, whatever the connection's own timeouts.
 *
 * @param nanos by {@link System#nanoTime}
 */
record Deadline(long nanos) {

    /** So much from now. */
    static Deadline in(Duration time) {
        return new Deadline(System.nanoTime() + time.toNanos());
    }

    /** The nanoseconds that are left, less than zero when it is past. */
    long left() {
        return nanos - System.nanoTime();
    }

    /**
     * The result of a call, if it comes in time. A call that doesn't is cancelled, but may have been made all the same.
     *
     * @throws BackendException if it failed, or didn't come in time
     */
    <T> T await(CompletableFuture<T> call) {
        try {
            return call.get(Math.max(left(), 0), TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            call.cancel(true);
            throw new BackendException("Redis didn't answer in time", late);
        } catch (InterruptedException interrupted) {
            call.cancel(true);
            Thread.currentThread().interrupt();
            throw new BackendException("interrupted while waiting for Redis", interrupted);
        } catch (ExecutionException | CompletionException failed) {
            throw RedisFailures.of(failed);
        }
    }
}
