package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisScript.Started;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A cluster of one node, which rejects scripts with keys of several slots as any cluster does. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class RedisClusterTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final ThrottlePolicy USER =
            ThrottlePolicy.of("per-user", BucketSpec.of("1/h").withCapacity(5), "user");
    private static final ThrottlePolicy GLOBAL =
            ThrottlePolicy.of("global", BucketSpec.of("1/h").withCapacity(8));

    @TempDir
    private static Path directory;

    @AutoClose
    private static TestRedis redis;

    /** A node needs two seconds until it takes commands. */
    @BeforeAll
    static void start() {
        redis = TestRedis.start("cluster-enabled yes", "dir " + directory);
        RedisCommands<byte[], byte[]> commands = redis.connection().sync();
        commands.clusterReset(true);
        commands.clusterAddSlots(IntStream.range(0, 16_384).toArray());
        await().until(() -> commands.clusterInfo().contains("cluster_state:ok"));
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
    void afterTheErrorOfAClusterAllTakesAreMadeAlone() {
        ScriptCalls calls = redis.scriptStore(
                        TestRedis.keys(), TIMEOUT, false, () -> RedisBucketStore.SERVER_TIME, TimeSource.system())
                .script();
        List<Runnable> sender = new ArrayList<>();
        GatheredTakes gathered = new GatheredTakes(calls, () -> sender::add);
        List<Started> takes = Stream.of("alice", "bob", "carol")
                .map(user -> gathered.start(List.of(Charge.of(USER, user, 1)), List.of()))
                .toList();
        sender.get(0).run();
        assertThat(takes).allSatisfy(take -> assertThat(
                        calls.answer(Charge.of(USER, "", 1), 0, take.join()).remaining())
                .isEqualTo(4));
        for (int i = 0; i <= GatheredTakes.TAKES_ALONE; i++) {
            gathered.start(List.of(Charge.of(USER, "dave", 1)), List.of());
        }
        assertThat(sender).hasSize(1);
    }

    @Test
    void aDenialHoldsIfTheOtherBucketsCanNotBeSeen() {
        RedisKeys keys = TestRedis.keys();
        BucketStore store = redis.scriptStore(keys, TIMEOUT, true, () -> RedisBucketStore.SERVER_TIME);
        take(store, "alice", 5);
        byte[] global = keys.key(Charge.of(GLOBAL, "", 1));
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

    /** The key of a register and that of a bucket may be on two nodes, so no script uses both. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aRequestTakesASlotAndATokenOrNeither(boolean configured) {
        ThrottlePolicy chat = ThrottlePolicy.of("chat", BucketSpec.of("4/h").withInFlight(2), "user");
        Deadline deadline = TestRedis.deadline(TIMEOUT);
        TimeSource time = TimeSource.system();
        BucketStore script =
                redis.scriptStore(TestRedis.keys(), TIMEOUT, configured, () -> RedisBucketStore.SERVER_TIME);
        BucketStore store = new FailoverBucketStore(
                "Redis", script, BucketStore.local(time), 1, policy -> FailureRule.DENY, deadline);
        Throttlers throttlers = new Throttlers(List.of(chat), store, time, ThrottleListener.NONE);
        Throttler alice = throttlers.get("chat").forKey("alice");

        List<Decision> running = List.of(alice.decide(1), alice.decide(1));
        assertThat(running).allMatch(Decision::allowed);
        for (int i = 0; i < 3; i++) {
            assertThat(alice.decide(1).outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        }
        assertThat(alice.snapshot().available()).isEqualTo(2);

        running.forEach(Decision::release);
        for (int i = 0; i < 2; i++) {
            await().until(() -> throttlers.inFlight("chat") == 0);
            Decision next = alice.decide(1);
            assertThat(next.allowed()).isTrue();
            next.release();
        }
        assertThat(alice.decide(1).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(throttlers.inFlight("chat")).isZero();
    }

    @Test
    void aConfiguredClusterIsCalledWithOneKeyAtATime(CapturedOutput output) {
        try (RedisConnections connections =
                TestRedis.connected(new RedisConnections(PlainClients.ofCluster(redis.port())))) {
            assertThat(connections.isCluster()).isTrue();
            assertTakesFromAllOrNone(
                    RedisBucketStore.script(connections, new RedisKeys("ratelimit", ""), TestRedis.deadline(TIMEOUT)));
        }
        assertThat(output).doesNotContain("is a cluster behind a single address");
    }

    /** Each bucket has a script call of its own, also if it takes a lease; a denial by one leaves the leases of the other. */
    @Test
    void instancesWithLeasesGrantWhatTheBucketsHave() {
        AtomicLong micros = new AtomicLong(1_795_000_000_000_000L);
        ManualTimeSource time = new ManualTimeSource();
        RedisKeys keys = TestRedis.keys();
        Duration lease = Duration.ofSeconds(10);
        ThrottlePolicy wide = ThrottlePolicy.of("wide", BucketSpec.of("2/1s").withCapacity(2_000))
                .withLease(lease);
        ThrottlePolicy narrow = ThrottlePolicy.of(
                        "narrow", BucketSpec.of("1/1s").withCapacity(1_000))
                .withLease(lease);
        List<Charge> both = List.of(Charge.of(wide, "", 1), Charge.of(narrow, "", 1));
        List<FailoverBucketStore> instances = Stream.generate(() -> new FailoverBucketStore(
                        "Redis",
                        redis.scriptStore(keys, TIMEOUT, true, micros::get),
                        BucketStore.local(time),
                        1,
                        policy -> FailureRule.DENY,
                        new Deadline(time, TIMEOUT),
                        Runnable::run))
                .limit(3)
                .toList();
        long taken = 0;
        for (int i = 0; i < 3_000; i++) {
            taken += instances.get(i % 3).take(both).allowed() ? 1 : 0;
        }
        assertThat(instances).allMatch(instance -> instance.leased(wide) > 0);
        Duration waiting = Duration.ofSeconds(3);
        for (int i = 0; i < 20; i++) {
            time.advance(waiting);
            micros.addAndGet(waiting.toNanos() / 1_000);
            for (int j = 0; j < 300; j++) {
                taken += instances.get(j % 3).take(both).allowed() ? 1 : 0;
            }
        }
        assertThat(taken).isBetween(1_000L, 1_060L);
        assertThat(instances.get(0).snapshot(Charge.of(wide, "", 1)).available())
                .isLessThanOrEqualTo(2_000 - taken + 120);
    }

    @Test
    void aClusterHasNoTransactions() {
        assertThatThrownBy(() -> RedisStorage.withTransactions(
                        PlainClients.ofCluster(redis.port()), "prefix", "", TestRedis.deadline(TIMEOUT)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not a cluster");
    }

    @Test
    void noKeyHoldsAHashTag() {
        RedisKeys keys = TestRedis.keys();
        for (String user : List.of("{a}", "a{b}c", "}{")) {
            assertThat(new String(keys.key(Charge.of(USER, user, 1)), StandardCharsets.US_ASCII))
                    .doesNotContain("{", "}");
        }
    }
}
