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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * Connections to the Redis of the application, by a separate client: the timeouts of the application's own client suit the
 * application. They are opened in the background, and no call waits for one longer than its deadline. Thread-safe.
 */
final class RedisConnections implements AutoCloseable {

    private final Client client;
    private final EventLoopDelays delays;
    private final boolean reconnects;
    private final BackgroundConnection<Shared> shared;
    private final ConnectionCheck check;

    private RedisConnections(Client client, EventLoopDelays delays, boolean reconnects) {
        this.client = client;
        this.delays = delays;
        this.reconnects = reconnects;
        this.shared = new BackgroundConnection<>(this::connectShared, Shared::close);
        this.check = new ConnectionCheck(this::ping, shared::renew);
    }

    /** The connection that all calls share, with its commands. */
    private record Shared(
            StatefulConnection<byte[], byte[]> connection, RedisClusterAsyncCommands<byte[], byte[]> commands) {

        void close() {
            if (connection.isOpen()) {
                connection.closeAsync();
            }
        }
    }

    /**
     * Returns connections to the Redis of the application. None is open yet. Those to a cluster reconnect by themselves. A
     * lost connection to another server is replaced by the next call: Lettuce would log each of its attempts.
     */
    static RedisConnections to(RedisClientFactory application) {
        EventLoopDelays delays = new EventLoopDelays();
        return new RedisConnections(application.create(delays), delays, application.isCluster());
    }

    /**
     * Returns connections for transactions. A new connection watches no keys, so none reconnects.
     *
     * @throws IllegalArgumentException if Redis is a cluster, where a transaction can't have keys of several nodes
     */
    static RedisConnections forTransactions(RedisClientFactory application) {
        if (application.isCluster()) {
            throw new IllegalArgumentException("transactions need a single Redis or Sentinel, not a cluster");
        }
        return to(application);
    }

    /** Returns the client of Lettuce. {@link #start} may make another one. */
    AbstractRedisClient client() {
        return client.get();
    }

    /** Returns whether Redis is a cluster, where a script may have one key only. */
    boolean isCluster() {
        return client() instanceof RedisClusterClient;
    }

    /**
     * Returns the commands of the connection that all calls share.
     *
     * @throws BackendException if it isn't open yet
     */
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
        if (failure instanceof CongestedException) {
            return failure;
        }
        if (failure.getCause() instanceof TimeoutException && delays.wasDelayedSince(began)) {
            return new CongestedException("this process was too busy to read a reply", failure.getCause());
        }
        check.failed(failure);
        return failure;
    }

    private CompletableFuture<?> ping() {
        return shared() instanceof RedisAdvancedClusterAsyncCommands<byte[], byte[]> cluster
                ? CompletableFuture.allOf(cluster.upstream().commands().ping().futures())
                : shared().ping().toCompletableFuture();
    }

    /** Begins to open the connection that all calls share. */
    CompletableFuture<?> connect() {
        return shared.begin();
    }

    /** Returns connections to a single server, each for one call at a time. */
    DedicatedConnections dedicated() {
        return new DedicatedConnections(
                () -> inBackground(() -> ((RedisClient) client()).connect(ByteArrayCodec.INSTANCE)));
    }

    /** Runs a task that may take long, such as connecting, on a thread of its own. There are few such tasks. */
    static <T> CompletableFuture<T> inBackground(Supplier<T> task) {
        return CompletableFuture.supplyAsync(task, work -> {
            Thread thread = new Thread(work, "ratelimit-redis-connect");
            thread.setDaemon(true);
            thread.start();
        });
    }

    /** Makes connections possible again after {@link #stop}. */
    void start() {
        client.start();
    }

    /** Closes all connections. Calls fail until {@link #start}. */
    void stop() {
        client.stop();
        shared.close();
    }

    @Override
    public void close() {
        client.close();
    }
}
