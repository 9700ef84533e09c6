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
import io.lettuce.core.resource.ClientResources;
import io.ratelimit.BackendException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Connections to the Redis of the application, made by a client of our own: the application's would wait as long as suits
 * the application. They are made in the background, and nobody waits for one longer than his deadline. Thread-safe.
 */
public final class RedisConnections implements AutoCloseable {

    private final LettuceConnectionFactory own;
    private final Runnable endThreads;
    private final AbstractRedisClient client;
    private final BackgroundConnection<Shared> shared;
    private final ConnectionCheck check;

    /** @param endThreads of the connections, if they are not the application's */
    private RedisConnections(LettuceConnectionFactory own, Runnable endThreads) {
        this.own = own;
        this.endThreads = endThreads;
        this.client = own.getRequiredNativeClient();
        this.shared = new BackgroundConnection<>(this::connectShared, Shared::close);
        this.check = new ConnectionCheck(this::ping, shared::renew);
    }

    /** The one connection that all calls share, with its commands. */
    private record Shared(
            StatefulConnection<byte[], byte[]> connection, RedisClusterAsyncCommands<byte[], byte[]> commands) {

        void close() {
            connection.closeAsync();
        }
    }

    /**
     * Connections to where the application's lead, made again by themselves when they are lost; none is made yet.
     *
     * @throws IllegalArgumentException if it is a {@link #isFixedList fixed list}
     */
    public static RedisConnections forScripts(LettuceConnectionFactory application) {
        return of(application, true);
    }

    /**
     * Connections to where the application's lead, closed when they are lost: a new one would watch nothing of what the
     * server was told to watch. None is made yet.
     *
     * @throws IllegalArgumentException if it is a {@link #isFixedList fixed list}, or a cluster, where one transaction
     *     can't have keys of several nodes
     */
    public static RedisConnections forTransactions(LettuceConnectionFactory application) {
        if (application.isClusterAware()) {
            throw new IllegalArgumentException("transactions need a single Redis or Sentinel, not a cluster");
        }
        return of(application, false);
    }

    private static RedisConnections of(LettuceConnectionFactory application, boolean reconnects) {
        LettuceClientConfiguration client = application.getClientConfiguration();
        RedisConfiguration location = RedisLocation.of(application);
        Optional<ClientResources> theirs = client.getClientResources();
        ClientResources threads = theirs.orElseGet(ClientResources::create);
        LettuceConnectionFactory own =
                new LettuceConnectionFactory(location, new OwnClientConfiguration(client, threads, reconnects));
        own.afterPropertiesSet();
        own.start();
        return new RedisConnections(own, theirs.isPresent() ? () -> {} : threads::shutdown);
    }

    /** Whether the application's are to a fixed list of a master and its replicas, with which ours can't be made. */
    public static boolean isFixedList(LettuceConnectionFactory application) {
        return RedisLocation.isFixedList(application);
    }

    AbstractRedisClient client() {
        return client;
    }

    /** Whether it is a cluster, so that a script may have one key. */
    public boolean isCluster() {
        return client instanceof RedisClusterClient;
    }

    /**
     * The commands of the one connection that all calls share.
     *
     * @throws BackendException if there is none yet; it is being made
     */
    RedisClusterAsyncCommands<byte[], byte[]> shared() {
        return shared.get().commands;
    }

    /** What there is may be outdated, so where the nodes of a cluster are is asked each time. */
    private Shared connectShared() {
        if (client instanceof RedisClusterClient cluster) {
            cluster.refreshPartitions();
            StatefulRedisClusterConnection<byte[], byte[]> connection = cluster.connect(ByteArrayCodec.INSTANCE);
            return new Shared(connection, connection.async());
        }
        StatefulRedisConnection<byte[], byte[]> connection = ((RedisClient) client).connect(ByteArrayCodec.INSTANCE);
        return new Shared(connection, connection.async());
    }

    /** Notes that a call on the shared connection failed, which may be because of the connection. */
    void failed(BackendException failure) {
        check.failed(failure);
    }

    private CompletableFuture<?> ping() {
        return shared() instanceof RedisAdvancedClusterAsyncCommands<byte[], byte[]> cluster
                ? CompletableFuture.allOf(cluster.upstream().commands().ping().futures())
                : shared().ping().toCompletableFuture();
    }

    /** Begins to make the connection that all calls share; whoever has time may wait for it. */
    public CompletableFuture<?> connect() {
        return shared.begin();
    }

    /** Connections to a single server that calls have to themselves. */
    OwnConnections toThemselves() {
        return new OwnConnections(() -> inBackground(() -> ((RedisClient) client).connect(ByteArrayCodec.INSTANCE)));
    }

    /** To connect may take long, so it has a thread of its own; there are few. */
    static <T> CompletableFuture<T> inBackground(Supplier<T> connect) {
        return CompletableFuture.supplyAsync(connect, work -> {
            Thread thread = new Thread(work, "ratelimit-redis-connect");
            thread.setDaemon(true);
            thread.start();
        });
    }

    @Override
    public void close() {
        own.destroy();
        endThreads.run();
    }
}
