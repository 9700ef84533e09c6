package io.ratelimit.autoconfigure;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.ratelimit.redis.RedisClientFactory;
import java.util.Optional;
import org.springframework.beans.BeansException;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Clients for the Redis that the application's connection factory leads to, with its addresses, credentials, TLS and
 * threads.
 */
final class LettuceClients implements RedisClientFactory {

    private final LettuceClientConfiguration application;
    private final RedisConfiguration location;
    private final boolean cluster;

    LettuceClients(LettuceConnectionFactory application) {
        this.application = application.getClientConfiguration();
        this.location = location(application);
        this.cluster = application.isClusterAware();
    }

    /**
     * Returns the address of the application's Redis, from a field of the factory. By its methods a factory with a list of a
     * master and replicas looks like one for localhost, and so does one whose single server was passed as any configuration.
     * The methods are used only if a later version renames the field.
     */
    static RedisConfiguration location(LettuceConnectionFactory application) {
        try {
            return new DirectFieldAccessor(application).getPropertyValue("configuration")
                            instanceof RedisConfiguration configuration
                    ? configuration
                    : locationByMethods(application);
        } catch (BeansException renamed) {
            return locationByMethods(application);
        }
    }

    private static RedisConfiguration locationByMethods(LettuceConnectionFactory application) {
        if (application.getClusterConfiguration() != null) {
            return application.getClusterConfiguration();
        }
        if (application.getSentinelConfiguration() != null) {
            return application.getSentinelConfiguration();
        }
        RedisConfiguration socket = application.getSocketConfiguration();
        return socket != null ? socket : application.getStandaloneConfiguration();
    }

    @Override
    public boolean isCluster() {
        return cluster;
    }

    @Override
    public Client create(NettyCustomizer customizer) {
        Optional<ClientResources> applicationThreads = application.getClientResources();
        ClientResources threads = applicationThreads.orElseGet(ClientResources::create);
        ClientResources resources =
                RedisClientFactory.resources(threads, new BothCustomizers(threads.nettyCustomizer(), customizer));
        LettuceConnectionFactory factory = new LettuceConnectionFactory(location, configuration(resources));
        factory.afterPropertiesSet();
        factory.start();
        return new FactoryClient(factory, () -> {
            resources.shutdown();
            if (applicationThreads.isEmpty()) {
                threads.shutdown();
            }
        });
    }

    /** Returns the application's configuration with the options of the limiter. */
    LettuceClientConfiguration configuration(ClientResources resources) {
        var limiter = LettuceClientConfiguration.builder()
                .clientResources(resources)
                .clientOptions(RedisClientFactory.options(
                        application.getClientOptions().orElseGet(ClientOptions::create), cluster))
                .commandTimeout(RedisClientFactory.atMostHandshake(application.getCommandTimeout()))
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

    /** The customizer of the application, and then that of the limiter. */
    private record BothCustomizers(NettyCustomizer application, NettyCustomizer limiter) implements NettyCustomizer {

        @Override
        public void afterBootstrapInitialized(Bootstrap bootstrap) {
            application.afterBootstrapInitialized(bootstrap);
            limiter.afterBootstrapInitialized(bootstrap);
        }

        @Override
        public void afterChannelInitialized(Channel channel) {
            application.afterChannelInitialized(channel);
            limiter.afterChannelInitialized(channel);
        }
    }

    /** @param endThreads ends the threads of the connections, unless they belong to the application */
    private record FactoryClient(LettuceConnectionFactory factory, Runnable endThreads) implements Client {

        @Override
        public AbstractRedisClient get() {
            return factory.getRequiredNativeClient();
        }

        @Override
        public void start() {
            factory.start();
        }

        @Override
        public void stop() {
            factory.stop();
        }

        @Override
        public void close() {
            factory.destroy();
            endThreads.run();
        }
    }
}
