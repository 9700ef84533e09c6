package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.StatusOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.PatientAwaits;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
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

    /** For calls that aren't late. */
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final int port = TestRedis.freePort();
    private final String prefix = TestRedis.prefix();
    private RedisServer server;
    private RedisConnections connections;
    private RedisClient adminClient;

    @AfterEach
    void close() throws IOException {
        if (adminClient != null) {
            adminClient.shutdown();
        }
        if (connections != null) {
            connections.close();
        }
        if (server != null && server.isActive()) {
            server.stop();
        }
    }

    private BucketStore store(boolean transactions, Duration timeout, String user, String password) {
        RedisClientFactory application = PlainClients.at(port, user, password);
        connections = new RedisConnections(application);
        return transactions
                ? RedisBucketStore.transaction(connections, new RedisKeys(prefix, ""), TestRedis.deadline(timeout))
                : RedisBucketStore.script(connections, new RedisKeys(prefix, ""), TestRedis.deadline(timeout));
    }

    private BucketStore store(boolean transactions) {
        return store(transactions, PATIENCE, null, null);
    }

    private static boolean take(BucketStore store, String user) {
        return store.take(List.of(Charge.of(POLICY, user, 1))).allowed();
    }

    /** Awaits that other users may take before this one does: a take that is late may have cost its token. */
    private static void awaitAllowed(BucketStore store, String user) {
        AtomicInteger others = new AtomicInteger();
        await().ignoreExceptions().until(() -> take(store, "other" + others.incrementAndGet()));
        assertThat(take(store, user)).isTrue();
    }

    /** Makes a call that must fail, and returns how long it took. */
    private static Duration failure(BucketStore store, String user) {
        long start = System.nanoTime();
        assertThatThrownBy(() -> take(store, user)).isInstanceOf(BackendException.class);
        return Duration.ofNanos(System.nanoTime() - start);
    }

    private RedisCommands<byte[], byte[]> admin() {
        adminClient = RedisClient.create(RedisURI.create("127.0.0.1", port));
        return adminClient.connect(ByteArrayCodec.INSTANCE).sync();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void withoutAServerACallFailsAtOnceUntilThereIsOne(boolean transactions) {
        BucketStore store = store(transactions);
        for (int i = 0; i < 20; i++) {
            assertThat(failure(store, "alice")).isLessThan(PATIENCE);
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
            assertThat(failure(store, "bob")).isLessThan(PATIENCE);
        }
        server = TestRedis.serverAt(port);
        awaitAllowed(store, "bob");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aServerThatHangsIsWaitedForUntilTheDeadline(boolean transactions) throws Exception {
        server = TestRedis.serverAt(port);
        BucketStore store = store(transactions, TIMEOUT, null, null);
        awaitAllowed(store, "alice");
        String info = admin().info("server");
        String pid = info.replaceAll("(?s).*process_id:(\\d+).*", "$1");
        new ProcessBuilder("kill", "-STOP", pid).start().waitFor();
        try {
            Duration latest = TIMEOUT.plusMillis(400); // a busy machine delays some calls more
            Duration quickest = failure(store, "bob");
            for (int i = 0; i < 3 || i < 20 && quickest.compareTo(latest) >= 0; i++) {
                Duration call = failure(store, "bob");
                quickest = call.compareTo(quickest) < 0 ? call : quickest;
            }
            assertThat(quickest).isBetween(TIMEOUT.minusMillis(1), latest);
        } finally {
            new ProcessBuilder("kill", "-CONT", pid).start().waitFor();
        }
        awaitAllowed(store, "carol");
    }

    /** Code of the application may block a thread that it shares with the limiter. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aConnectionWhoseThreadIsBlockedIsReplaced(boolean transactions) {
        server = TestRedis.serverAt(port);
        BucketStore store = store(transactions, TIMEOUT, null, null);
        awaitAllowed(store, "alice");
        CountDownLatch end = new CountDownLatch(1);
        connections.sender().execute(() -> {
            try {
                end.await();
            } catch (InterruptedException shutdown) {
                Thread.currentThread().interrupt();
            }
        });
        try {
            AtomicInteger users = new AtomicInteger();
            await().atMost(PATIENCE)
                    .ignoreExceptions()
                    .until(() -> take(store, "bob" + users.incrementAndGet())
                            && take(store, "carol" + users.get())
                            && take(store, "dave" + users.get()));
        } finally {
            end.countDown();
        }
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
        allow(admin, "-set");
        assertMisconfigured(store, transactions ? "permissions" : "can't run this command");
    }

    /** The server has {@code min-replicas-to-write}. Replicas come back by themselves. Redis 7 rejects scripts too. */
    @Test
    void aServerWithTooFewReplicasIsUnavailable() {
        server = TestRedis.serverAt(port);
        BucketStore store = store(true);
        awaitAllowed(store, "alice");
        RedisCommands<byte[], byte[]> admin = admin();
        admin.configSet("min-replicas-to-write", "1");
        assertThatThrownBy(() -> take(store, "bob"))
                .isInstanceOf(BackendException.class)
                .isNot(TestRedis.MISCONFIGURATION)
                .hasMessageContaining("NOREPLICAS");
        admin.configSet("min-replicas-to-write", "0");
        awaitAllowed(store, "bob");
    }

    /** A server that is full has no memory for a new connection for each call. */
    @Test
    void errorsLeaveTheConnectionsOfTransactions() {
        server = TestRedis.serverAt(port);
        BucketStore store = store(true);
        awaitAllowed(store, "alice");
        RedisCommands<byte[], byte[]> admin = admin();
        String before = connectionsReceived(admin);

        admin.configSet("maxmemory", "1");
        for (int i = 0; i < 5; i++) {
            assertMisconfigured(store, "OOM");
        }
        admin.configSet("maxmemory", "0");
        byte[] key = new RedisKeys(prefix, "").key(BucketName.of(Charge.of(POLICY, "WRONGTYPE", 1)));
        admin.lpush(key, key);
        for (int i = 0; i < 5; i++) {
            assertMisconfigured(store, "WRONGTYPE");
        }
        admin.set(key, new byte[] {1});
        for (int i = 0; i < 5; i++) {
            assertThatThrownBy(() -> take(store, "WRONGTYPE")).hasMessageContaining("is no bucket");
        }
        admin.del(key);

        await("no watched key is left").until(() -> !admin.clientList().contains("flags=d"));
        assertThat(take(store, "WRONGTYPE")).isTrue();
        assertThat(connectionsReceived(admin)).isEqualTo(before);
    }

    /** Such an error may leave keys watched, and on a compatible server the transaction open. */
    @Test
    void aTransactionThatFailsAndIsNotDiscardedClosesItsConnection() {
        server = TestRedis.serverAt(port);
        BucketStore store = store(true);
        awaitAllowed(store, "alice");
        RedisCommands<byte[], byte[]> admin = admin();
        allow(admin, "-multi");
        String before = connectionsReceived(admin);
        assertMisconfigured(store, "EXEC without MULTI");
        allow(admin, "+multi");
        assertThat(take(store, "bob")).isTrue();
        assertThat(connectionsReceived(admin)).isNotEqualTo(before);
    }

    private static String connectionsReceived(RedisCommands<byte[], byte[]> admin) {
        return admin.info("stats").replaceAll("(?s).*total_connections_received:(\\d+).*", "$1");
    }

    private static void allow(RedisCommands<byte[], byte[]> admin, String right) {
        admin.dispatch(
                CommandType.ACL,
                new StatusOutput<>(ByteArrayCodec.INSTANCE),
                new CommandArgs<>(ByteArrayCodec.INSTANCE)
                        .add("SETUSER")
                        .add("default")
                        .add(right));
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
            PatientAwaits.awaitSelfTest(buckets);
            RedisCommands<byte[], byte[]> admin = admin();
            await().untilAsserted(() -> assertThat(admin.clientList().lines())
                    .as("8, that of the start, and this")
                    .hasSize(8 + 1 + 1));
        }
    }

    @Test
    void theApplicationsCredentialsAreUsed() {
        server = TestRedis.serverAt(port, "user shop on >secret ~* +@all", "user default off");
        BucketStore store = store(false, PATIENCE, "shop", "secret");
        awaitAllowed(store, "alice");
        connections.close();
        BucketStore wrong = store(false, PATIENCE, "shop", "wrong");
        await().until(() -> {
            try {
                return take(wrong, "bob");
            } catch (BackendException failed) {
                return failed.getMessage().contains("WRONGPASS");
            }
        });
    }
}
