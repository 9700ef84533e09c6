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
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;

/**
 * The application's configuration of Lettuce, with TLS and credentials, changed for the limiter. A call without a
 * connection fails at once, calls in flight are bounded, and commands go to the node that may write. There is no timer for
 * each command: a {@link io.ratelimit.failover.Deadline} is enough.
 */
final class LimiterClientConfiguration {

    private static final int MAX_IN_FLIGHT = 2_000;

    private static final Duration BETWEEN_ATTEMPTS = Duration.ofMillis(250);

    private static final Duration BETWEEN_REFRESHES = Duration.ofSeconds(1);

    private static final Duration REFRESH_PERIOD = Duration.ofSeconds(5);

    /** The limit for each step of opening a connection (connect, TLS, HELLO), outside the deadline of any request. */
    private static final Duration MAX_HANDSHAKE = Duration.ofSeconds(1);

    private LimiterClientConfiguration() {}

    /**
     * Returns the changed configuration.
     *
     * @param threads the threads that serve the connections
     * @param delays is registered for each connection
     * @param reconnects whether a lost connection is opened again by itself
     */
    static LettuceClientConfiguration of(
            LettuceClientConfiguration application,
            ClientResources threads,
            EventLoopDelays delays,
            boolean reconnects) {
        var limiter = LettuceClientConfiguration.builder()
                .clientResources(resources(threads, delays))
                .clientOptions(options(application.getClientOptions().orElseGet(ClientOptions::create), reconnects))
                .commandTimeout(atMostHandshake(application.getCommandTimeout()))
                .shutdownTimeout(application.getShutdownTimeout())
                .shutdownQuietPeriod(application.getShutdownQuietPeriod());
        application.getClientName().ifPresent(limiter::clientName);
        application.getRedisCredentialsProviderFactory().ifPresent(limiter::redisCredentialsProviderFactory);
        if (application.isUseSsl()) {
            var tls = limiter.useSsl().verifyPeer(application.getVerifyMode());
            if (application.isStartTls()) {
                tls.startTls();
            }
        }
        return limiter.build();
    }

    /** Reconnects at a constant rate. By default Lettuce waits longer each time, up to half a minute. */
    private static ClientResources resources(ClientResources threads, EventLoopDelays delays) {
        return threads.mutate()
                .reconnectDelay(Delay.constant(BETWEEN_ATTEMPTS))
                .nettyCustomizer(delays)
                .build();
    }

    private static ClientOptions options(ClientOptions options, boolean reconnects) {
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

    private static Duration atMostHandshake(Duration wanted) {
        return wanted.compareTo(MAX_HANDSHAKE) < 0 ? wanted : MAX_HANDSHAKE;
    }
}
