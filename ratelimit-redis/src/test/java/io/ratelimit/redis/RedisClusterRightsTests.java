package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.SlotHash;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Charge;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.PatientAwaits;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The documented rights suffice on a cluster, also for a key whose slot is being moved to another node. */
@Tag("slow")
class RedisClusterRightsTests {

    private static final String PREFIX = "ratelimit:shop";
    private static final Charge ALICE =
            Charge.of(ThrottlePolicy.of("per-user", BucketSpec.of("5/1h"), "user"), "alice", 2);
    private static final int SLOT = SlotHash.getSlot(new RedisKeys(PREFIX, "").key(ALICE));

    @TempDir
    private static Path directory;

    @AutoClose
    private static TestRedis source;

    @AutoClose
    private static TestRedis target;

    @BeforeAll
    static void start() throws IOException {
        source = node("source");
        target = node("target");
        from().clusterAddSlots(IntStream.range(0, SlotHash.SLOT_COUNT).toArray());
        from().clusterMeet("127.0.0.1", target.port());
        await().until(() -> isReady(from()) && isReady(to()));
        from().clusterSetSlotMigrating(SLOT, to().clusterMyId());
        to().clusterSetSlotImporting(SLOT, from().clusterMyId());
    }

    private static TestRedis node(String name) throws IOException {
        return TestRedis.start("cluster-enabled yes", "dir " + Files.createDirectory(directory.resolve(name)));
    }

    private static boolean isReady(RedisCommands<byte[], byte[]> node) {
        String info = node.clusterInfo();
        return info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2");
    }

    private static RedisCommands<byte[], byte[]> from() {
        return source.connection().sync();
    }

    private static RedisCommands<byte[], byte[]> to() {
        return target.connection().sync();
    }

    @BeforeEach
    void empty() {
        from().flushall();
        to().flushall();
        from().scriptFlush();
        to().scriptFlush();
    }

    private static List<String> documented() {
        List<String> rights = new ArrayList<>(RedisRights.OF_SCRIPTS);
        rights.addAll(RedisRights.TO_CONNECT);
        rights.addAll(RedisRights.ON_CLUSTERS);
        return rights;
    }

    private static List<String> without(String right) {
        List<String> rights = documented();
        assertThat(rights.remove(right)).isTrue();
        return rights;
    }

    private static RedisStorage buckets(List<String> rights) {
        RedisRights.allow(source, rights);
        RedisRights.allow(target, rights);
        return RedisStorage.withScripts(
                PlainClients.ofCluster(source.port(), RedisRights.USER, RedisRights.PASSWORD),
                PREFIX,
                "",
                new Deadline(new SystemTimeSource(), Duration.ofSeconds(5)));
    }

    private static void use(RedisStorage buckets) {
        PatientAwaits.awaitSelfTest(buckets);
        BucketStore store = buckets.store();
        assertThat(store.take(List.of(ALICE)).allowed()).isTrue();
        assertThat(store.snapshot(ALICE).available()).isEqualTo(3);
        store.reset(ALICE);
        assertThat(store.take(List.of(ALICE)).remaining()).isEqualTo(3);
    }

    @Test
    void theDocumentedRightsSufficeForChangesForAllInstances() {
        List<String> rights = documented();
        rights.addAll(RedisRights.OF_CHANGES);
        try (RedisStorage buckets = buckets(rights)) {
            PatientAwaits.awaitSelfTest(buckets);
            ChangeBoard changes = buckets.changes();
            changes.put("api", "a").join();
            assertThat(changes.read(List.of("api")).join().changes()).containsEntry("api", "a");
            Instant now = changes.read(List.of("api")).join().now();
            assertThat(now)
                    .isBetween(Instant.now().minusSeconds(60), Instant.now().plusSeconds(60));
            assertThat(changes.remove("api").join()).isTrue();
        }
    }

    @Test
    void theDocumentedRightsSuffice() {
        try (RedisStorage buckets = buckets(documented())) {
            use(buckets);
            assertThat(to().clusterCountKeysInSlot(SLOT)).isEqualTo(1);
        }
    }

    @Test
    void withoutTheRightToListTheNodesThereIsNoConnection() {
        try (RedisStorage buckets = buckets(without("+cluster"))) {
            assertThatThrownBy(() -> use(buckets))
                    .is(TestRedis.MISCONFIGURATION)
                    .hasMessageStartingWith("Redis failed: NOPERM")
                    .hasMessageNotContaining("127.0.0.1");
        }
    }

    @Test
    void withoutTheRightToAskKeysOfAMovingSlotFail() {
        try (RedisStorage buckets = buckets(without("+asking"))) {
            PatientAwaits.awaitSelfTest(buckets);
            assertThatThrownBy(() -> buckets.store().take(List.of(ALICE)))
                    .isInstanceOf(BackendException.class)
                    .isNot(TestRedis.MISCONFIGURATION)
                    .hasMessageStartingWith("Redis failed: MOVED")
                    .hasMessageNotContaining("cluster.nodes");
        }
    }

    /** The node that an address leads to has a part of the keys. The others would fail for ever. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aNodeThatIsConfiguredAsASingleServerIsAMisconfiguration(boolean transactions) {
        RedisConnections connections = TestRedis.connections(target.host(), "" + target.port());
        try {
            Deadline deadline = TestRedis.deadline(Duration.ofSeconds(30));
            RedisKeys keys = new RedisKeys(PREFIX, "");
            BucketStore store = transactions
                    ? RedisBucketStore.transaction(connections, keys, deadline)
                    : RedisBucketStore.script(connections, keys, deadline);
            Charge bob = Charge.of(ALICE.policy(), "bob", 1);
            assertThatThrownBy(() -> store.take(List.of(bob)))
                    .is(TestRedis.MISCONFIGURATION)
                    .hasMessageStartingWith("Redis failed: MOVED")
                    .hasMessageContaining("configure the cluster by 'spring.data.redis.cluster.nodes'");
        } finally {
            connections.close();
        }
    }
}
