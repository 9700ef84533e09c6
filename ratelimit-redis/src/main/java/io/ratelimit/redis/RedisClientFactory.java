package io.ratelimit.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.resource.NettyCustomizer;

/**
 * The Redis of an application, as a factory of clients for the limiter alone: the timeouts of the application's own client
 * suit the application. The clients have the options of {@link LimiterOptions}.
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
