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
        return uninterrupted(nanos -> result(call, nanos));
    }

    private static <T> T result(CompletableFuture<T> call, long nanos) throws InterruptedException {
        try {
            return call.get(nanos, TimeUnit.NANOSECONDS);
        } catch (TimeoutException late) {
            call.cancel(true);
            throw new BackendException("Redis didn't answer in time", late);
        } catch (ExecutionException | CompletionException failed) {
            throw RedisFailures.of(failed);
        }
    }

    /** Something that is waited for so long. */
    interface Wait<T> {
        T get(long nanos) throws InterruptedException;
    }

    /** Who is interrupted learns of it afterwards: the wait is short, and it is no failure of Redis's. */
    <T> T uninterrupted(Wait<T> wait) {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return wait.get(Math.max(left(), 0));
                } catch (InterruptedException meanwhile) {
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
