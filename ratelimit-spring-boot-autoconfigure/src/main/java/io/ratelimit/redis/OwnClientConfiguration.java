package io.ratelimit.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.ReadFrom;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.SslVerifyMode;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.RedisCredentialsProviderFactory;

/**
 * The application's configuration of Lettuce, TLS and credentials included, with what a limiter needs otherwise: a call
 * without a connection fails at once, calls in flight are bounded, and it is asked the node that may write. There is no
 * timer for each command: a {@link Deadline} is enough.
 *
 * @param threads that serve the connections
 * @param reconnects whether a connection that was lost is made again by itself
 */
record OwnClientConfiguration(LettuceClientConfiguration application, ClientResources threads, boolean reconnects)
        implements LettuceClientConfiguration {

    private static final int MOST_IN_FLIGHT = 10_000;

    private static final Duration BETWEEN_ATTEMPTS = Duration.ofMillis(250);

    private static final Duration BETWEEN_REFRESHES = Duration.ofSeconds(1);

    /** To connect, for TLS and to say hello is given so long each, off the deadline of any request. */
    private static final Duration LONGEST_HANDSHAKE = Duration.ofSeconds(1);

    @Override
    public Optional<ClientOptions> getClientOptions() {
        ClientOptions options = application.getClientOptions().orElseGet(ClientOptions::create);
        ClusterClientOptions cluster = options instanceof ClusterClientOptions known
                ? known
                : ClusterClientOptions.builder(options).build();
        return Optional.of(cluster.mutate()
                .autoReconnect(reconnects)
                .disconnectedBehavior(DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(MOST_IN_FLIGHT)
                .timeoutOptions(TimeoutOptions.create())
                .socketOptions(socket(options.getSocketOptions()))
                .sslOptions(tls(options.getSslOptions()))
                .topologyRefreshOptions(refresh(cluster.getTopologyRefreshOptions()))
                .build());
    }

    private static SocketOptions socket(SocketOptions theirs) {
        return theirs.mutate()
                .connectTimeout(atMostHandshake(theirs.getConnectTimeout()))
                .build();
    }

    private static SslOptions tls(SslOptions theirs) {
        return theirs.mutate()
                .handshakeTimeout(atMostHandshake(theirs.getHandshakeTimeout()))
                .build();
    }

    /** By itself Lettuce looks once in five seconds where the nodes of a cluster have gone. */
    private static ClusterTopologyRefreshOptions refresh(@Nullable ClusterTopologyRefreshOptions theirs) {
        ClusterTopologyRefreshOptions known = theirs != null ? theirs : ClusterTopologyRefreshOptions.create();
        return ClusterTopologyRefreshOptions.builder()
                .adaptiveRefreshTriggersTimeout(BETWEEN_REFRESHES)
                .enablePeriodicRefresh(known.isPeriodicRefreshEnabled())
                .refreshPeriod(known.getRefreshPeriod())
                .dynamicRefreshSources(known.useDynamicRefreshSources())
                .closeStaleConnections(known.isCloseStaleConnections())
                .build();
    }

    private static Duration atMostHandshake(Duration wanted) {
        return wanted.compareTo(LONGEST_HANDSHAKE) < 0 ? wanted : LONGEST_HANDSHAKE;
    }

    @Override
    public Duration getCommandTimeout() {
        return atMostHandshake(application.getCommandTimeout());
    }

    @Override
    public Optional<ReadFrom> getReadFrom() {
        return Optional.empty();
    }

    @Override
    public boolean isUseSsl() {
        return application.isUseSsl();
    }

    @Override
    @SuppressWarnings("deprecation")
    public boolean isVerifyPeer() {
        return application.isVerifyPeer();
    }

    @Override
    public SslVerifyMode getVerifyMode() {
        return application.getVerifyMode();
    }

    @Override
    public boolean isStartTls() {
        return application.isStartTls();
    }

    /** By default Lettuce waits ever longer before it tries again, up to half a minute. */
    @Override
    public Optional<ClientResources> getClientResources() {
        return Optional.of(threads.mutate()
                .reconnectDelay(Delay.constant(BETWEEN_ATTEMPTS))
                .build());
    }

    @Override
    public Optional<String> getClientName() {
        return application.getClientName();
    }

    @Override
    public Optional<RedisCredentialsProviderFactory> getRedisCredentialsProviderFactory() {
        return application.getRedisCredentialsProviderFactory();
    }

    @Override
    public Duration getShutdownTimeout() {
        return application.getShutdownTimeout();
    }

    @Override
    public Duration getShutdownQuietPeriod() {
        return application.getShutdownQuietPeriod();
    }
}
