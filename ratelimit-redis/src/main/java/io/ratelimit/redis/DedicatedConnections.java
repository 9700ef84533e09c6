package io.ratelimit.redis;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.api.StatefulRedisConnection;
import io.ratelimit.BackendException;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A small pool of connections, each used by one call at a time, because watched keys belong to a connection. A call
 * that fails by an answer leaves its connection to the next call: a server that is full, or forbids a command, would otherwise
 * get a new connection for each call. After a timeout, and an error of a replica, the connection is closed. Thread-safe.
 */
final class DedicatedConnections {

    private static final int MAX_CONNECTIONS = 8;

    private final Supplier<CompletableFuture<StatefulRedisConnection<byte[], byte[]>>> connect;
    private final Semaphore free = new Semaphore(MAX_CONNECTIONS, true);

    /** In the order of their last use: a firewall may forget a connection that rests for minutes. */
    private final Queue<StatefulRedisConnection<byte[], byte[]>> idle = new ConcurrentLinkedQueue<>();

    /** @param connect opens a connection that doesn't reconnect by itself: a new connection watches no keys */
    DedicatedConnections(Supplier<CompletableFuture<StatefulRedisConnection<byte[], byte[]>>> connect) {
        this.connect = connect;
    }

    /**
     * Does work on a connection that no other call uses meanwhile. If the work fails after an answer, it leaves no watched keys
     * and no transaction, or closes the connection.
     *
     * @throws BackendException if no connection can be opened, or the work throws it
     * @throws CongestedException if all connections are in use
     */
    <T> T with(Deadline.Call call, Function<StatefulRedisConnection<byte[], byte[]>, T> work) {
        StatefulRedisConnection<byte[], byte[]> connection = borrow(call);
        boolean usable = false;
        try {
            T result = work.apply(connection);
            usable = true;
            return result;
        } catch (BackendException failed) {
            closeIdleAfter(failed);
            usable = wasAnswered(failed);
            throw failed;
        } finally {
            giveBack(usable ? connection : null, connection);
        }
    }

    /** Returns whether a master has answered: with an error, with a value that is no bucket, or that other calls were first. */
    private static boolean wasAnswered(BackendException failed) {
        Throwable cause = failed.getCause();
        return cause == null
                || (cause instanceof RedisCommandExecutionException || failed.isMisconfiguration())
                        && !RedisFailures.isReadOnly(cause);
    }

    /** Closes the idle connections if one turns out to be useless, since they were opened at the same time. */
    private void closeIdleAfter(BackendException failed) {
        Throwable cause = failed instanceof CongestedException ? null : failed.getCause();
        if (cause instanceof TimeoutException || cause != null && RedisFailures.isReadOnly(cause)) {
            closeIdle();
        }
    }

    private void closeIdle() {
        for (var connection = idle.poll(); connection != null; connection = idle.poll()) {
            connection.closeAsync();
        }
    }

    /** Opens all connections, so that no call has to wait for one. */
    void openAll(Deadline.Call call) {
        if (free.tryAcquire(MAX_CONNECTIONS)) {
            IntStream.range(0, MAX_CONNECTIONS)
                    .mapToObj(i -> connect.get().whenComplete((opened, failure) -> giveBack(opened, opened)))
                    .toList()
                    .forEach(opening -> call.await(opening.copy())); // one that is late is given back nevertheless
        }
    }

    private StatefulRedisConnection<byte[], byte[]> borrow(Deadline.Call call) {
        if (!call.acquire(free)) {
            throw new CongestedException("all " + MAX_CONNECTIONS + " connections to Redis were in use", null);
        }
        CompletableFuture<StatefulRedisConnection<byte[], byte[]>> opening;
        try {
            StatefulRedisConnection<byte[], byte[]> connection = idle.poll();
            while (connection != null && !connection.isOpen()) {
                connection.closeAsync();
                connection = idle.poll();
            }
            if (connection != null) {
                return connection;
            }
            opening = connect.get();
        } catch (RuntimeException | Error failed) {
            free.release();
            throw failed;
        }
        return await(opening, call);
    }

    /** Waits for a connection. One that opens after the deadline is for the next call, and counts as in use until then. */
    private StatefulRedisConnection<byte[], byte[]> await(
            CompletableFuture<StatefulRedisConnection<byte[], byte[]>> opening, Deadline.Call call) {
        try {
            return call.await(opening.copy());
        } catch (RuntimeException | Error late) {
            opening.whenComplete((connection, failure) -> giveBack(connection, connection));
            throw late;
        }
    }

    private void giveBack(
            @Nullable StatefulRedisConnection<byte[], byte[]> usable,
            @Nullable StatefulRedisConnection<byte[], byte[]> any) {
        try {
            if (usable != null) {
                idle.add(usable);
            } else if (any != null) {
                any.closeAsync();
            }
        } finally {
            free.release();
        }
    }
}
