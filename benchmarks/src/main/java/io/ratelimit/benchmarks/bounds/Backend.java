package io.ratelimit.benchmarks.bounds;

import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulRedisConnection;
import io.ratelimit.benchmarks.LocalRedis;
import java.io.IOException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import org.h2.tools.Server;

/** What several instances share, on a port of its own. */
interface Backend extends AutoCloseable {

    int port();

    /** Makes the backend unavailable. */
    void fail() throws Exception;

    /** Makes the backend available again, with the state that it had. */
    void recover() throws Exception;

    /** Lets the backend evict keys from now on when it has this many more bytes. */
    void evictBeyond(int bytes);

    @Override
    void close() throws IOException;

    /** Sends a signal to a process. */
    static void signal(String name, String process) throws Exception {
        new ProcessBuilder("kill", "-" + name, process).start().waitFor();
    }

    /** Starts a Redis. It fails by being suspended: connections stay open and nothing answers. */
    static Backend redis() throws IOException {
        LocalRedis server = LocalRedis.start();
        RedisClient client = RedisClient.create("redis://127.0.0.1:" + server.port());
        StatefulRedisConnection<String, String> connection = client.connect();
        String process = connection
                .sync()
                .info("server")
                .lines()
                .filter(line -> line.startsWith("process_id:"))
                .map(line -> line.substring("process_id:".length()).strip())
                .findFirst()
                .orElseThrow();
        return new Backend() {
            @Override
            public int port() {
                return server.port();
            }

            @Override
            public void fail() throws Exception {
                signal("STOP", process);
            }

            @Override
            public void recover() throws Exception {
                signal("CONT", process);
            }

            @Override
            public void evictBeyond(int bytes) {
                long used = connection
                        .sync()
                        .info("memory")
                        .lines()
                        .filter(line -> line.startsWith("used_memory:"))
                        .mapToLong(line -> Long.parseLong(
                                line.substring("used_memory:".length()).strip()))
                        .sum();
                connection.sync().configSet("maxmemory-policy", "allkeys-lru");
                connection.sync().configSet("maxmemory", Long.toString(used + bytes));
            }

            @Override
            public void close() throws IOException {
                client.shutdown();
                server.close();
            }
        };
    }

    /** Starts an H2 that listens. It fails by closing its connections, and its data stays. */
    static Backend h2() throws SQLException {
        Server[] server = {
            Server.createTcpServer("-tcpPort", "0", "-ifNotExists").start()
        };
        int port = server[0].getPort();
        Connection keepsData = DriverManager.getConnection("jdbc:h2:mem:bounds", "sa", "");
        return new Backend() {
            @Override
            public int port() {
                return port;
            }

            @Override
            public void fail() {
                server[0].stop();
            }

            @Override
            public void recover() throws SQLException {
                server[0] = Server.createTcpServer("-tcpPort", Integer.toString(port), "-ifNotExists")
                        .start();
            }

            @Override
            public void evictBeyond(int bytes) {}

            @Override
            public void close() throws IOException {
                server[0].stop();
                try {
                    keepsData.close();
                } catch (SQLException failed) {
                    throw new IOException(failed);
                }
            }
        };
    }
}
