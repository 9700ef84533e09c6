package io.ratelimit.redis;

import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.ratelimit.BackendException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A few connections, each used by one call at a time: what a server is told to watch belongs to the connection. One on
 * which a call failed isn't used again, since nobody knows what it still watches. Thread-safe.
 */
final class OwnConnections implements AutoCloseable {

    private static final int MOST = 8;

    private final Supplier<CompletableFuture<StatefulRedisConnection<byte[], byte[]>>> connect;
    private final Semaphore free = new Semaphore(MOST, true);
    private final ConcurrentLinkedDeque<StatefulRedisConnection<byte[], byte[]>> idle = new ConcurrentLinkedDeque<>();
    private volatile boolean closed;

    /**
     * @param connect makes a connection that doesn't reconnect: a new one watches nothing
     */
    OwnConnections(Supplier<CompletableFuture<StatefulRedisConnection<byte[], byte[]>>> connect) {
        this.connect = connect;
    }

    /** Makes a call on a connection that nobody else uses meanwhile. */
    <T> T with(Deadline deadline, Function<RedisAsyncCommands<byte[], byte[]>, T> call) {
        StatefulRedisConnection<byte[], byte[]> connection = borrow(deadline);
        boolean fine = false;
        try {
            T result = call.apply(connection.async());
            fine = true;
            return result;
        } catch (BackendException failed) {
            doubtOthers(failed);
            throw failed;
        } finally {
            giveBack(fine ? connection : null, connection);
        }
    }

    /** Where one leads nowhere any more, or to a server that was the master once, so do those that were made with it. */
    private void doubtOthers(BackendException failed) {
        Throwable cause = failed.getCause();
        if (cause instanceof TimeoutException || cause != null && RedisFailures.isReadOnly(cause)) {
            closeIdle();
        }
    }

    private void closeIdle() {
        for (var connection = idle.poll(); connection != null; connection = idle.poll()) {
            connection.closeAsync();
        }
    }

    /** Makes all of them, so that no call has to wait for one. */
    void openAll(Deadline deadline) {
        if (free.tryAcquire(MOST)) {
            IntStream.range(0, MOST)
                    .mapToObj(i -> connect.get().whenComplete((made, failure) -> giveBack(made, made)))
                    .toList()
                    .forEach(deadline::await);
        }
    }

    private StatefulRedisConnection<byte[], byte[]> borrow(Deadline deadline) {
        acquire(deadline);
        StatefulRedisConnection<byte[], byte[]> connection = idle.poll();
        while (connection != null && !connection.isOpen()) {
            connection.closeAsync();
            connection = idle.poll();
        }
        return connection != null ? connection : open(deadline);
    }

    private void acquire(Deadline deadline) {
        if (!deadline.uninterrupted(nanos -> free.tryAcquire(nanos, TimeUnit.NANOSECONDS))) {
            throw new BackendException("all " + MOST + " connections to Redis were in use until the deadline");
        }
    }

    /** One that comes too late for who asked is for the next; until then it counts as in use. */
    private StatefulRedisConnection<byte[], byte[]> open(Deadline deadline) {
        CompletableFuture<StatefulRedisConnection<byte[], byte[]>> opening = connect.get();
        CompletableFuture<StatefulRedisConnection<byte[], byte[]>> wanted = opening.copy();
        try {
            return deadline.await(wanted);
        } catch (BackendException late) {
            opening.whenComplete((connection, failure) -> giveBack(connection, connection));
            throw late;
        }
    }

    private void giveBack(
            @Nullable StatefulRedisConnection<byte[], byte[]> usable,
            @Nullable StatefulRedisConnection<byte[], byte[]> any) {
        if (usable != null && !closed) {
            idle.push(usable);
        } else if (any != null) {
            any.closeAsync();
        }
        free.release();
    }

    @Override
    public void close() {
        closed = true;
        for (var connection = idle.poll(); connection != null; connection = idle.poll()) {
            connection.close();
        }
    }
}
