package io.ratelimit.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.async.RedisAdvancedClusterAsyncCommands;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.ratelimit.BackendException;
import io.ratelimit.redis.RedisClientFactory.Client;
import io.ratelimit.remote.Deadline.CongestedException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Connections to the Redis of the application, by a separate client: the timeouts of the application's own client suit the
 * application. They are opened in the background, and no call waits for one longer than its deadline. Thread-safe.
 */
final class RedisConnections implements AutoCloseable {

    private final EventLoopDelays delays = new EventLoopDelays();
    private final Client client;
    private final boolean reconnects;
    private final BackgroundConnection<Shared> shared = new BackgroundConnection<>(this::connectShared, Shared::close);
    private final ConnectionCheck check = new ConnectionCheck(this::ping, shared::renew);

    /**
     * Creates connections to the Redis of the application. None is open yet. Those to a cluster reconnect by themselves. A
     * lost connection to another server is replaced by the next call: Lettuce would log each of its attempts.
     */
    RedisConnections(RedisClientFactory application) {
        this.client = application.create(delays);
        this.reconnects = application.isCluster();
    }

    private record Shared(
            StatefulConnection<byte[], byte[]> connection, RedisClusterAsyncCommands<byte[], byte[]> commands) {

        void close() {
            if (connection.isOpen()) {
                connection.closeAsync();
            }
        }
    }

    /** Returns the client of Lettuce. {@link #start} may make another one. */
    AbstractRedisClient client() {
        return client.get();
    }

    /** Returns whether Redis is a cluster, where a script may have one key only. */
    boolean isCluster() {
        return client() instanceof RedisClusterClient;
    }

    /** @throws BackendException if the connection that all calls share isn't open yet */
    RedisClusterAsyncCommands<byte[], byte[]> shared() {
        Shared open = shared.get();
        if (!reconnects && !open.connection.isOpen()) {
            shared.renew();
        }
        return open.commands;
    }

    /** Opens the shared connection. The known nodes of a cluster may be outdated, so they are refreshed each time. */
    private Shared connectShared() {
        AbstractRedisClient client = client();
        if (client instanceof RedisClusterClient cluster) {
            cluster.refreshPartitions();
            StatefulRedisClusterConnection<byte[], byte[]> connection = cluster.connect(ByteArrayCodec.INSTANCE);
            return new Shared(connection, connection.async());
        }
        StatefulRedisConnection<byte[], byte[]> connection = ((RedisClient) client).connect(ByteArrayCodec.INSTANCE);
        return new Shared(connection, connection.async());
    }

    /**
     * Checks the connection after a call that failed.
     *
     * @param began when the call began, as {@link System#nanoTime}
     * @return the failure; a {@link CongestedException} if this process was too busy to read a reply in time
     */
    BackendException failed(BackendException failure, long began) {
        Throwable cause = failure.getCause();
        if (cause != null && RedisFailures.isRedirection(cause) && isCluster()) {
            return RedisFailures.redirectedTooOften(cause);
        }
        boolean late = cause instanceof TimeoutException;
        boolean congested = failure instanceof CongestedException;
        boolean delayed = late && !congested && delays.wereDelayedSince(began);
        if (!congested && !delayed || late && delays.isAnyStuck()) {
            check.failed(failure);
        }
        return delayed ? new CongestedException("this process was too busy to read a reply", cause) : failure;
    }

    private CompletableFuture<?> ping() {
        return shared() instanceof RedisAdvancedClusterAsyncCommands<byte[], byte[]> cluster
                ? CompletableFuture.allOf(cluster.upstream().commands().ping().futures())
                : shared().ping().toCompletableFuture();
    }

    /** Returns the thread that sends the commands of the latest connection, or of another one, which costs time. */
    Executor sender() {
        return delays.latest();
    }

    /** Begins to open the connection that all calls share. */
    CompletableFuture<?> connect() {
        return shared.begin();
    }

    DedicatedConnections dedicated() {
        return new DedicatedConnections(
                () -> inBackground(() -> ((RedisClient) client()).connect(ByteArrayCodec.INSTANCE)));
    }

    /** Runs a task that may take long, such as connecting, on a thread of its own. There are few such tasks. */
    static <T> CompletableFuture<T> inBackground(Supplier<T> task) {
        return inBackground(task, work -> {
            Thread thread = new Thread(work, "ratelimit-redis-connect");
            thread.setDaemon(true);
            thread.start();
        });
    }

    /** Runs a task on a thread. If none can be started, the task fails like any other. */
    static <T> CompletableFuture<T> inBackground(Supplier<T> task, Executor threads) {
        try {
            return CompletableFuture.supplyAsync(task, threads);
        } catch (OutOfMemoryError noThread) {
            return CompletableFuture.failedFuture(noThread);
        }
    }

    void start() {
        client.start();
    }

    /** Closes all connections. Calls fail until {@link #start}. */
    void stop() {
        client.stop();
        shared.close();
        delays.end();
    }

    @Override
    public void close() {
        client.close();
        delays.end();
    }

    /**
     * Finds out whether a connection has to be renewed because it doesn't notice that it is useless. The other end may have
     * disappeared without closing it, or the server may no longer be the master. Thread-safe.
     *
     * <p>A late answer may mean that the server is slow. More connections wouldn't help a slow server, so a ping with more
     * time decides.
     */
    static final class ConnectionCheck {

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
            try {
                reply().thenApply(pong -> pong)
                        .orTimeout(PING_TIMEOUT, TimeUnit.NANOSECONDS)
                        .whenComplete((pong, failure) -> ended(failure));
            } catch (Error failed) { // no memory is left
                pinging.set(false);
                throw failed;
            }
        }

        private void ended(@Nullable Throwable failure) {
            pinging.set(false);
            if (failure instanceof TimeoutException) {
                renew.run();
            }
        }

        /** Returns the reply to a ping. A ping that can't be sent is a failure like any other. */
        private CompletableFuture<?> reply() {
            try {
                return ping.get();
            } catch (RuntimeException | Error unsent) {
                return CompletableFuture.failedFuture(unsent);
            }
        }
    }
}
