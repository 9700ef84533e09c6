package io.ratelimit.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import io.lettuce.core.resource.NettyCustomizer;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The Redis of an application, as a factory of clients for the limiter alone: the timeouts of the application's own client
 * suit the application. The clients have its {@link #options} and {@link #resources}.
 */
public interface RedisClientFactory {

    /** Returns whether Redis is a cluster. */
    boolean isCluster();

    /**
     * Creates a client. It has no connection yet. A lost connection is opened again by itself on a cluster only.
     *
     * @param customizer is called for each connection
     */
    Client create(NettyCustomizer customizer);

    /**
     * Returns the threads of a client, which reconnects at a constant rate: by default Lettuce waits up to half a minute. Shut
     * them down when the client is closed, or Lettuce warns of it; that doesn't end the threads they share.
     */
    static ClientResources resources(ClientResources threads, NettyCustomizer customizer) {
        return threads.mutate() // a copy owns what its original owns, unless that is set again
                .commandLatencyRecorder(threads.commandLatencyRecorder())
                .eventLoopGroupProvider(threads.eventLoopGroupProvider())
                .eventExecutorGroup(threads.eventExecutorGroup())
                .timer(threads.timer())
                .reconnectDelay(Delay.constant(Duration.ofMillis(250)))
                .nettyCustomizer(customizer)
                .build();
    }

    /**
     * Returns the application's options, changed for the limiter; they also fit a client of a single server. A call without a
     * connection fails at once, calls in flight are bounded, and commands go to the node that may write. There is no timer for
     * each command: a {@link io.ratelimit.remote.Deadline} is enough.
     *
     * @param reconnects whether a lost connection is opened again by itself
     */
    static ClusterClientOptions options(ClientOptions options, boolean reconnects) {
        ClusterClientOptions cluster = options instanceof ClusterClientOptions clusterOptions
                ? clusterOptions
                : ClusterClientOptions.builder(options).build();
        return cluster.mutate()
                .autoReconnect(reconnects)
                .disconnectedBehavior(DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(2_000)
                .timeoutOptions(TimeoutOptions.create())
                .socketOptions(socket(options.getSocketOptions()))
                .sslOptions(tls(options.getSslOptions()))
                .topologyRefreshOptions(refresh(cluster.getTopologyRefreshOptions()))
                .build();
    }

    private static SocketOptions socket(SocketOptions ofApplication) {
        return ofApplication
                .mutate()
                .connectTimeout(atMostHandshake(ofApplication.getConnectTimeout()))
                .build();
    }

    private static SslOptions tls(SslOptions ofApplication) {
        return ofApplication
                .mutate()
                .handshakeTimeout(atMostHandshake(ofApplication.getHandshakeTimeout()))
                .build();
    }

    /**
     * Refreshes the addresses of a cluster's nodes after signs of a change, and every five seconds. A node that is frozen
     * gives no sign: a connection to it can't be opened, and is not one that was lost.
     */
    private static ClusterTopologyRefreshOptions refresh(@Nullable ClusterTopologyRefreshOptions ofApplication) {
        Duration longest = Duration.ofSeconds(5);
        ClusterTopologyRefreshOptions options =
                ofApplication != null ? ofApplication : ClusterTopologyRefreshOptions.create();
        boolean isFrequent =
                options.isPeriodicRefreshEnabled() && options.getRefreshPeriod().compareTo(longest) < 0;
        return ClusterTopologyRefreshOptions.builder()
                .adaptiveRefreshTriggersTimeout(Duration.ofSeconds(1))
                .enablePeriodicRefresh(isFrequent ? options.getRefreshPeriod() : longest)
                .dynamicRefreshSources(options.useDynamicRefreshSources())
                .closeStaleConnections(options.isCloseStaleConnections())
                .build();
    }

    /**
     * Returns the time for each step of opening a connection (connect, TLS, HELLO), outside the deadline of any request: the
     * wanted one, a second at most.
     */
    static Duration atMostHandshake(Duration wanted) {
        Duration longest = Duration.ofSeconds(1);
        return wanted.compareTo(longest) < 0 ? wanted : longest;
    }

    /** A client with its threads. */
    interface Client extends AutoCloseable {

        /** Returns the client of Lettuce. After {@link #start} it may be another one. */
        AbstractRedisClient get();

        /** Makes connections possible again after {@link #stop}. */
        void start();

        /** Closes all connections. */
        void stop();

        /** Closes all connections, and ends the threads unless they belong to the application. */
        @Override
        void close();
    }
}
