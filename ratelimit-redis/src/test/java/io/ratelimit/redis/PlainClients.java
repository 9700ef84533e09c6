package io.ratelimit.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import org.jspecify.annotations.Nullable;

/** Clients for a server at a port of this machine, or for the cluster that it belongs to, made without Spring. */
record PlainClients(RedisURI uri, boolean isCluster) implements RedisClientFactory {

    static PlainClients at(int port) {
        return at(port, null, null);
    }

    static PlainClients at(int port, @Nullable String user, @Nullable String password) {
        return new PlainClients(uri(port, user, password), false);
    }

    static PlainClients ofCluster(int port) {
        return ofCluster(port, null, null);
    }

    static PlainClients ofCluster(int port, @Nullable String user, @Nullable String password) {
        return new PlainClients(uri(port, user, password), true);
    }

    private static RedisURI uri(int port, @Nullable String user, @Nullable String password) {
        RedisURI.Builder uri = RedisURI.builder()
                .withHost("127.0.0.1")
                .withPort(port)
                .withTimeout(RedisClientFactory.atMostHandshake(RedisURI.DEFAULT_TIMEOUT_DURATION));
        if (user != null && password != null) {
            uri.withAuthentication(user, password);
        }
        return uri.build();
    }

    @Override
    public Client create(NettyCustomizer customizer) {
        ClientResources threads = ClientResources.create();
        ClientResources resources = RedisClientFactory.resources(threads, customizer);
        var options = RedisClientFactory.options(ClientOptions.create(), isCluster);
        if (isCluster) {
            RedisClusterClient cluster = RedisClusterClient.create(resources, uri);
            cluster.setOptions(options);
            return new OneClient(cluster, resources, threads);
        }
        RedisClient client = RedisClient.create(resources, uri);
        client.setOptions(options);
        return new OneClient(client, resources, threads);
    }

    /** A client that isn't stopped. */
    private record OneClient(AbstractRedisClient get, ClientResources resources, ClientResources threads)
            implements Client {

        @Override
        public void start() {}

        @Override
        public void stop() {
            throw new UnsupportedOperationException();
        }

        @Override
        public void close() {
            get.shutdown();
            resources.shutdown();
            threads.shutdown();
        }
    }
}
