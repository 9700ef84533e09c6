package io.ratelimit.redis;

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
 * The application's options of Lettuce, changed for the limiter. A call without a connection fails at once, calls in flight
 * are bounded, and commands go to the node that may write. There is no timer for each command: a {@link
 * io.ratelimit.remote.Deadline} is enough.
 */
public final class LimiterOptions {

    private static final int MAX_IN_FLIGHT = 2_000;

    private static final Duration BETWEEN_ATTEMPTS = Duration.ofMillis(250);

    private static final Duration BETWEEN_REFRESHES = Duration.ofSeconds(1);

    private static final Duration REFRESH_PERIOD = Duration.ofSeconds(5);

    /** The limit for each step of opening a connection (connect, TLS, HELLO), outside the deadline of any request. */
    private static final Duration MAX_HANDSHAKE = Duration.ofSeconds(1);

    private LimiterOptions() {}

    /**
     * Returns the threads of a client, which reconnects at a constant rate: by default Lettuce waits up to half a minute. Shut
     * them down when the client is closed, or Lettuce warns of it; that doesn't end the threads they share.
     */
    public static ClientResources resources(ClientResources threads, NettyCustomizer customizer) {
        return threads.mutate() // a copy owns what its original owns, unless that is set again
                .commandLatencyRecorder(threads.commandLatencyRecorder())
                .eventLoopGroupProvider(threads.eventLoopGroupProvider())
                .eventExecutorGroup(threads.eventExecutorGroup())
                .timer(threads.timer())
                .reconnectDelay(Delay.constant(BETWEEN_ATTEMPTS))
                .nettyCustomizer(customizer)
                .build();
    }

    /**
     * Returns the options of a client; they also fit a client of a single server.
     *
     * @param reconnects whether a lost connection is opened again by itself
     */
    public static ClusterClientOptions of(ClientOptions options, boolean reconnects) {
        ClusterClientOptions cluster = options instanceof ClusterClientOptions clusterOptions
                ? clusterOptions
                : ClusterClientOptions.builder(options).build();
        return cluster.mutate()
                .autoReconnect(reconnects)
                .disconnectedBehavior(DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(MAX_IN_FLIGHT)
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
        ClusterTopologyRefreshOptions options =
                ofApplication != null ? ofApplication : ClusterTopologyRefreshOptions.create();
        boolean isFrequent =
                options.isPeriodicRefreshEnabled() && options.getRefreshPeriod().compareTo(REFRESH_PERIOD) < 0;
        return ClusterTopologyRefreshOptions.builder()
                .adaptiveRefreshTriggersTimeout(BETWEEN_REFRESHES)
                .enablePeriodicRefresh(isFrequent ? options.getRefreshPeriod() : REFRESH_PERIOD)
                .dynamicRefreshSources(options.useDynamicRefreshSources())
                .closeStaleConnections(options.isCloseStaleConnections())
                .build();
    }

    /** Returns the time for each step of opening a connection: the wanted one, a second at most. */
    public static Duration atMostHandshake(Duration wanted) {
        return wanted.compareTo(MAX_HANDSHAKE) < 0 ? wanted : MAX_HANDSHAKE;
    }
}
