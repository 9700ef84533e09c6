package io.ratelimit.benchmarks;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import redis.embedded.RedisServer;
import redis.embedded.core.RedisServerBuilder;

/** A Redis of this machine's, on a port of its own: the one that is installed, or else a binary that Maven fetched. */
public final class LocalRedis implements AutoCloseable {

    private static final File INSTALLED = new File("/usr/bin/redis-server");

    private final RedisServer server;

    private LocalRedis(RedisServer server) {
        this.server = server;
    }

    /** Starts one that keeps nothing on disk. */
    public static LocalRedis start() throws IOException {
        RedisServerBuilder builder = RedisServer.newRedisServer()
                .port(freePort())
                .bind("127.0.0.1")
                .setting("save \"\"")
                .onShutdownForceStop(true);
        if (INSTALLED.canExecute()) {
            builder.executableProvider(() -> INSTALLED);
        }
        RedisServer server = builder.build();
        server.start();
        return new LocalRedis(server);
    }

    /** Returns a port that nothing listens on. */
    public static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    public int port() {
        return server.ports().get(0);
    }

    @Override
    public void close() throws IOException {
        server.stop();
    }
}
