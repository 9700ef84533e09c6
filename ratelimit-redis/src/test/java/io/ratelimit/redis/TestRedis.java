package io.ratelimit.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.TimeSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.assertj.core.api.Condition;
import org.awaitility.Awaitility;
import redis.embedded.RedisServer;
import redis.embedded.core.RedisServerBuilder;

/**
 * A real Redis for tests: a binary that Maven fetched, on a free port, one for all tests of a JVM and gone with it. The
 * environment variable {@code RATELIMIT_TEST_REDIS=host:port} names another one; each test has a key prefix of its own.
 * {@code RATELIMIT_TEST_REDIS_BINARY=/usr/bin/redis-server} is started in place of that binary, also where tests have a
 * server to themselves.
 */
public final class TestRedis implements AutoCloseable {

    private static final String OTHER = "RATELIMIT_TEST_REDIS";
    private static final String OTHER_BINARY = "RATELIMIT_TEST_REDIS_BINARY";
    /** Leaves failures as they are. */
    static final RedisBucketStore.FailureJudge FAILURES = (failure, began) -> failure;

    /** The reason of a failure is the configuration or the data of Redis. */
    static final Condition<Throwable> MISCONFIGURATION = new Condition<>(
            failure -> failure instanceof BackendException backend && backend.isMisconfiguration(),
            "a misconfiguration");

    private static final AtomicInteger PREFIXES = new AtomicInteger();

    private final RedisServer server;
    private final RedisURI uri;
    private final RedisClient client;
    private final RedisClient transactions;
    private final StatefulRedisConnection<byte[], byte[]> connection;
    private final DedicatedConnections dedicated;

    private TestRedis(RedisServer server, RedisURI uri) {
        this.server = server;
        this.uri = uri;
        this.client = RedisClient.create(uri);
        this.transactions = RedisClient.create(uri);
        transactions.setOptions(ClientOptions.builder().autoReconnect(false).build());
        this.connection = client.connect(ByteArrayCodec.INSTANCE);
        this.dedicated = new DedicatedConnections(
                () -> CompletableFuture.supplyAsync(() -> transactions.connect(ByteArrayCodec.INSTANCE)));
    }

    private static final class Shared {
        private static final TestRedis REDIS = shared();

        private static TestRedis shared() {
            String other = System.getenv(OTHER);
            TestRedis redis = other == null ? start() : new TestRedis(null, RedisURI.create("redis://" + other));
            Runtime.getRuntime().addShutdownHook(new Thread(redis::close));
            return redis;
        }
    }

    /** Returns the server of all tests that don't change its settings. */
    static TestRedis shared() {
        return Shared.REDIS;
    }

    /** Starts a separate server for a test that changes its settings; always the binary. */
    static TestRedis start(String... settings) {
        int port = freePort();
        return new TestRedis(serverAt(port, settings), RedisURI.create("127.0.0.1", port));
    }

    /** Starts a server without a client, at a free port. */
    public static RedisServer serverAt(int port, String... settings) {
        try {
            RedisServerBuilder builder = RedisServer.newRedisServer()
                    .port(port)
                    .bind("127.0.0.1")
                    .setting("save \"\"")
                    .onShutdownForceStop(true);
            String other = System.getenv(OTHER_BINARY);
            if (other != null) {
                builder.executableProvider(() -> new File(other));
            }
            for (String setting : settings) {
                builder.setting(setting);
            }
            RedisServer server = builder.build();
            server.start();
            return server;
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Returns a port that no other server of these tests has, in this or another JVM. */
    public static int freePort() {
        return TestPorts.next();
    }

    /** Returns a deadline for calls outside a request: each has the whole time. */
    static Deadline deadline(Duration timeout) {
        return new Deadline(new SystemTimeSource(), timeout);
    }

    /**
     * Connects to a server. On a busy machine an attempt may take longer than the client allows.
     *
     * @param process the arguments of a process: host, port, and others
     */
    static RedisConnections connections(String... process) {
        RedisConnections connections = new RedisConnections(
                new PlainClients(RedisURI.create(process[0], Integer.parseInt(process[1])), false));
        return connected(connections);
    }

    /** Awaits that connections are open. */
    static RedisConnections connected(RedisConnections connections) {
        Awaitility.await().atMost(Duration.ofMinutes(2)).ignoreExceptions().until(() -> {
            connections.connect().join();
            return true;
        });
        return connections;
    }

    /** Returns a store of scripts that allows a second for each call, and denies all while Redis is unavailable. */
    static BucketStore denyingStore(RedisConnections connections, String prefix) {
        Deadline deadline = deadline(Duration.ofSeconds(1));
        return new FailoverBucketStore(
                "Redis",
                RedisBucketStore.script(connections, new RedisKeys(prefix, ""), deadline),
                BucketStore.local(new SystemTimeSource()),
                1,
                policy -> FailureRule.DENY,
                deadline);
    }

    /** Returns keys that no other test uses. */
    static RedisKeys keys() {
        return new RedisKeys(prefix(), "");
    }

    static String prefix() {
        return "test" + ProcessHandle.current().pid() + "-" + PREFIXES.incrementAndGet();
    }

    StatefulRedisConnection<byte[], byte[]> connection() {
        return connection;
    }

    String host() {
        return uri.getHost();
    }

    int port() {
        return uri.getPort();
    }

    /** Returns a store of scripts that leaves failures as they are. */
    RedisBucketStore scriptStore(RedisKeys keys, Duration timeout, boolean oneKeyPerScript, LongSupplier time) {
        return scriptStore(keys, timeout, oneKeyPerScript, time, TimeSource.system());
    }

    /** Returns a store of scripts of a machine whose clock differs from the server's. */
    RedisScriptBucketStore scriptStore(
            RedisKeys keys, Duration timeout, boolean oneKeyPerScript, LongSupplier serverTime, TimeSource clock) {
        return new RedisScriptBucketStore(
                connection::async, keys, deadline(timeout), FAILURES, oneKeyPerScript, serverTime, clock);
    }

    /** Returns a store of transactions that leaves failures as they are. */
    RedisBucketStore transactionStore(RedisKeys keys, Duration timeout, LongSupplier time) {
        return new RedisTransactionBucketStore(dedicated, keys, deadline(timeout), FAILURES, time);
    }

    @Override
    public void close() {
        client.shutdown();
        transactions.shutdown();
        if (server != null) {
            try {
                server.stop();
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
    }
}
