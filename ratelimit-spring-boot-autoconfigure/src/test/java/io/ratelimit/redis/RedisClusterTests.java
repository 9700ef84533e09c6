package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** A cluster of one node, which rejects scripts with keys of several slots as any cluster does. */
@ExtendWith(OutputCaptureExtension.class)
class RedisClusterTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final ThrottlePolicy USER =
            ThrottlePolicy.of("per-user", BucketSpec.of("1/h").withCapacity(5), "user");
    private static final ThrottlePolicy GLOBAL =
            ThrottlePolicy.of("global", BucketSpec.of("1/h").withCapacity(8));

    @TempDir
    private static Path directory;

    private TestRedis redis;

    @BeforeEach
    void start() {
        redis = TestRedis.start("cluster-enabled yes", "dir " + directory);
        RedisCommands<byte[], byte[]> commands = redis.connection().sync();
        commands.clusterReset(true);
        commands.clusterAddSlots(IntStream.range(0, 16_384).toArray());
        await().until(() -> commands.clusterInfo().contains("cluster_state:ok"));
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    private static Decision take(BucketStore store, String user, long cost) {
        return store.take(List.of(Charge.of(USER, user, cost), Charge.of(GLOBAL, "", cost)));
    }

    private static void assertTakesFromAllOrNone(BucketStore store) {
        assertThat(take(store, "alice", 5).allowed()).isTrue();
        assertThat(take(store, "bob", 3).allowed()).isTrue();
        Decision denied = take(store, "bob", 1);
        assertThat(denied.denials())
                .extracting(answer -> answer.policy().name())
                .containsExactly("global");
        assertThat(store.snapshot(Charge.of(USER, "bob", 1)).available()).isEqualTo(2);
    }

    @Test
    void aClusterIsDetectedByItsFirstErrorAndLoggedOnce(CapturedOutput output) {
        BucketStore store = redis.scriptStore(TestRedis.keys(), TIMEOUT, false, () -> RedisBucketStore.SERVER_TIME);
        assertTakesFromAllOrNone(store);
        assertThat(output.toString().split("is a cluster behind a single address", -1))
                .hasSize(2);
    }

    @Test
    void aDenialHoldsIfTheOtherBucketsCanNotBeSeen() {
        RedisKeys keys = TestRedis.keys();
        BucketStore store = redis.scriptStore(keys, TIMEOUT, true, () -> RedisBucketStore.SERVER_TIME);
        take(store, "alice", 5);
        byte[] global = keys.of(Charge.of(GLOBAL, "", 1));
        redis.connection().sync().del(global);
        redis.connection().sync().lpush(global, new byte[] {1});

        assertThat(take(store, "alice", 1).answers())
                .extracting(answer -> answer.policy().name() + " " + answer.outcome())
                .containsExactly("per-user DENIED");
        assertThatThrownBy(() -> take(store, "bob", 1)).hasMessageContaining("WRONGTYPE");
    }

    @Test
    void aGiveDetectsAClusterToo() {
        RedisKeys keys = TestRedis.keys();
        BucketStore configured = redis.scriptStore(keys, TIMEOUT, true, () -> RedisBucketStore.SERVER_TIME);
        Decision taken = take(configured, "alice", 2);
        BucketStore detecting = redis.scriptStore(keys, TIMEOUT, false, () -> RedisBucketStore.SERVER_TIME);
        detecting.giveBack(taken.answers());
        assertThat(configured.snapshot(Charge.of(USER, "alice", 1)).resetAfter())
                .isZero();
        assertThat(configured.snapshot(Charge.of(GLOBAL, "", 1)).resetAfter()).isZero();
    }

    @Test
    void aConfiguredClusterIsCalledWithOneKeyAtATime(CapturedOutput output) {
        LettuceConnectionFactory application =
                new LettuceConnectionFactory(new RedisClusterConfiguration(List.of("127.0.0.1:" + redis.port())));
        try (RedisConnections connections = RedisConnections.forScripts(application)) {
            assertThat(connections.isCluster()).isTrue();
            connections.connect().join();
            assertTakesFromAllOrNone(
                    RedisBucketStore.script(connections, new RedisKeys("ratelimit", ""), TestRedis.deadline(TIMEOUT)));
        }
        assertThat(output).doesNotContain("is a cluster behind a single address");
    }

    @Test
    void aClusterHasNoTransactions() {
        LettuceConnectionFactory application =
                new LettuceConnectionFactory(new RedisClusterConfiguration(List.of("127.0.0.1:" + redis.port())));
        assertThatThrownBy(() -> RedisConnections.forTransactions(application))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not a cluster");
    }

    @Test
    void noKeyHoldsAHashTag() {
        RedisKeys keys = TestRedis.keys();
        for (String user : List.of("{a}", "a{b}c", "}{")) {
            assertThat(new String(keys.of(Charge.of(USER, user, 1)), StandardCharsets.US_ASCII))
                    .doesNotContain("{", "}");
        }
    }
}
