package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.RedisClient;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.embedded.RedisServer;

/** Servers that fail in different ways, with the connections of an application. */
@Tag("slow")
class RedisFailureTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", BucketSpec.of("1/h"), "user");
    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    private final int port = TestRedis.freePort();
    private final String prefix = TestRedis.prefix();
    private RedisServer server;
    private RedisConnections connections;

    @AfterEach
    void close() throws IOException {
        if (connections != null) {
            connections.close();
        }
        if (server != null && server.isActive()) {
            server.stop();
        }
    }

    private BucketStore store(boolean transactions, String user, String password) {
        RedisClientFactory application = PlainClients.at(port, user, password);
        connections = new RedisConnections(application);
        return transactions
                ? RedisBucketStore.transaction(connections, new RedisKeys(prefix, ""), TestRedis.deadline(TIMEOUT))
                : RedisBucketStore.script(connections, new RedisKeys(prefix, ""), TestRedis.deadline(TIMEOUT));
    }

    private BucketStore store(boolean transactions) {
        return store(transactions, null, null);
    }

    private static boolean take(BucketStore store, String user) {
        return store.take(List.of(Charge.of(POLICY, user, 1))).allowed();
    }

    private static void awaitAllowed(BucketStore store, String user) {
        await().ignoreExceptions().until(() -> take(store, user));
    }

    private RedisCommands<byte[], byte[]> admin() {
        return ((RedisClient) connections.client())
                .connect(ByteArrayCodec.INSTANCE)
                .sync();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void withoutAServerACallFailsAtOnceUntilThereIsOne(boolean transactions) {
        BucketStore store = store(transactions);
        for (int i = 0; i < 20; i++) {
            long start = System.nanoTime();
            assertThatThrownBy(() -> take(store, "alice")).isInstanceOf(BackendException.class);
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(TIMEOUT);
        }
        server = TestRedis.serverAt(port);
        awaitAllowed(store, "alice");
        assertThat(take(store, "alice")).isFalse();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatComesBackIsUsedAgain(boolean transactions) throws IOException {
        server = TestRedis.serverAt(port);
        BucketStore store = store(transactions);
        awaitAllowed(store, "alice");
        server.stop();
        for (int i = 0; i < 10; i++) {
            long start = System.nanoTime();
            assertThatThrownBy(() -> take(store, "bob")).isInstanceOf(BackendException.class);
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(TIMEOUT.plusMillis(400));
        }
        server = TestRedis.serverAt(port);
        awaitAllowed(store, "bob");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatHangsIsWaitedForUntilTheDeadline(boolean transactions) throws Exception {
        server = TestRedis.serverAt(port);
        BucketStore store = store(transactions);
        awaitAllowed(store, "alice");
        String info = admin().info("server");
        String pid = info.replaceAll("(?s).*process_id:(\\d+).*", "$1");
        new ProcessBuilder("kill", "-STOP", pid).start().waitFor();
        try {
            for (int i = 0; i < 4; i++) {
                long start = System.nanoTime();
                assertThatThrownBy(() -> take(store, "bob")).isInstanceOf(BackendException.class);
                assertThat(Duration.ofNanos(System.nanoTime() - start))
                        .isBetween(TIMEOUT.minusMillis(1), TIMEOUT.plusMillis(400));
            }
        } finally {
            new ProcessBuilder("kill", "-CONT", pid).start().waitFor();
        }
        awaitAllowed(store, "carol");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatMayNotBeWrittenToIsMisconfigured(boolean transactions) {
        server = TestRedis.serverAt(port);
        BucketStore store = store(transactions);
        awaitAllowed(store, "alice");
        RedisCommands<byte[], byte[]> admin = admin();
        admin.configSet("maxmemory", "1");
        assertMisconfigured(store, "OOM");
        admin.configSet("maxmemory", "0");
        admin.replicaof("127.0.0.1", TestRedis.freePort());
        assertMisconfigured(store, "READONLY");
        admin.replicaofNoOne();
        admin.dispatch(
                CommandType.ACL,
                new StatusOutput<>(ByteArrayCodec.INSTANCE),
                new CommandArgs<>(ByteArrayCodec.INSTANCE)
                        .add("SETUSER")
                        .add("default")
                        .add("-set"));
        assertMisconfigured(store, transactions ? "permissions" : "can't run this command");
    }

    private static void assertMisconfigured(BucketStore store, String word) {
        assertThatThrownBy(() -> take(store, word))
                .is(TestRedis.MISCONFIGURATION)
                .hasMessageContaining(word);
    }

    /** The first requests may come all at once, and would have to wait for connections otherwise. */
    @Test
    void theConnectionsOfTransactionsAreMadeAtTheStart() {
        server = TestRedis.serverAt(port);
        Deadline request = new Deadline(new SystemTimeSource(), TIMEOUT);
        try (RedisStorage buckets = RedisStorage.withTransactions(PlainClients.at(port), prefix, "", request)) {
            buckets.selfTest();
            store(false);
            assertThat(admin().clientList().lines())
                    .as("8, that of the start, and this")
                    .hasSize(8 + 1 + 1);
        }
    }

    @Test
    void theApplicationsCredentialsAreUsed() {
        server = TestRedis.serverAt(port, "user shop on >secret ~* +@all", "user default off");
        BucketStore store = store(false, "shop", "secret");
        awaitAllowed(store, "alice");
        connections.close();
        BucketStore wrong = store(false, "shop", "wrong");
        await().until(() -> {
            try {
                return take(wrong, "bob");
            } catch (BackendException failed) {
                return failed.getMessage().contains("WRONGPASS");
            }
        });
    }
}
