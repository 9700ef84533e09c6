package io.ratelimit.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.ClientOptions.DisconnectedBehavior;
import io.lettuce.core.ReadFrom;
import io.lettuce.core.SslVerifyMode;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.Delay;
import java.time.Duration;
import java.util.Optional;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.RedisCredentialsProviderFactory;

/**
 * The application's configuration of Lettuce, TLS and credentials included, with what a limiter needs otherwise: a call
 * without a connection fails at once, calls in flight are bounded, and it is asked the node that may write. There is no
 * timer for each command: a {@link Deadline} is enough.
 *
 * @param reconnects whether a connection that was lost is made again by itself
 */
record OwnClientConfiguration(LettuceClientConfiguration application, boolean reconnects)
        implements LettuceClientConfiguration {

    private static final int MOST_IN_FLIGHT = 10_000;

    private static final Duration BETWEEN_ATTEMPTS = Duration.ofMillis(250);

    /** To connect and to say hello is given so long, off the deadline of any request. */
    private static final Duration LONGEST_HANDSHAKE = Duration.ofSeconds(2);

    @Override
    public Optional<ClientOptions> getClientOptions() {
        return Optional.of(application
                .getClientOptions()
                .orElseGet(ClientOptions::create)
                .mutate()
                .autoReconnect(reconnects)
                .disconnectedBehavior(DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(MOST_IN_FLIGHT)
                .timeoutOptions(TimeoutOptions.create())
                .build());
    }

    @Override
    public Duration getCommandTimeout() {
        Duration wanted = application.getCommandTimeout();
        return wanted.compareTo(LONGEST_HANDSHAKE) < 0 ? wanted : LONGEST_HANDSHAKE;
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

    /** The application's threads. By default Lettuce waits ever longer before it tries again, up to half a minute. */
    @Override
    public Optional<ClientResources> getClientResources() {
        return application.getClientResources().map(theirs -> theirs.mutate()
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
