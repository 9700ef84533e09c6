package io.ratelimit.redis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.Specs;
import io.ratelimit.Threads;
import io.ratelimit.ThrottlePolicy;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Both stores on the clock of the server. */
@Tag("slow")
class RedisServerTests {

    private static final BucketSpec SPEC = BucketSpec.of("1/h").withCapacity(500);
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", SPEC, "user");
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private final TestRedis redis = TestRedis.shared();
    private final RedisKeys keys = TestRedis.keys();

    enum Strategy {
        SCRIPT,
        SCRIPT_A_KEY,
        TRANSACTION
    }

    private RedisBucketStore store(Strategy strategy) {
        return strategy == Strategy.TRANSACTION
                ? redis.transactionStore(keys, TIMEOUT, () -> RedisBucketStore.SERVER_TIME)
                : redis.scriptStore(
                        keys, TIMEOUT, strategy == Strategy.SCRIPT_A_KEY, () -> RedisBucketStore.SERVER_TIME);
    }

    private RedisCommands<byte[], byte[]> commands() {
        return redis.connection().sync();
    }

    private byte[] key(Strategy strategy, Charge charge) {
        return strategy == Strategy.TRANSACTION ? keys.key(BucketName.of(charge)) : keys.key(charge);
    }

    private static Charge user(String user, long cost) {
        return Charge.of(POLICY, user, cost);
    }

    private static boolean take(BucketStore store, Charge... charges) {
        return store.take(List.of(charges)).allowed();
    }

    @ParameterizedTest
    @EnumSource
    void manyThreadsTakeExactlyTheCapacity(Strategy strategy) {
        BucketStore store = store(strategy);
        LongAdder granted = new LongAdder();
        Threads.run(64, thread -> {
            for (int i = 0; i < 20; i++) {
                if (take(store, user("alice", 1))) {
                    granted.increment();
                }
            }
        });
        assertThat(granted.sum()).isEqualTo(500);
        assertThat(store.snapshot(user("alice", 1)).available()).isZero();
    }

    /** Their values have different forms. */
    @Test
    void aBucketIsFullAgainUnderTheOtherStrategy() {
        assertThat(take(store(Strategy.SCRIPT), user("alice", 500))).isTrue();
        assertThat(take(store(Strategy.TRANSACTION), user("alice", 500))).isTrue();
        assertThat(take(store(Strategy.SCRIPT), user("alice", 1))).isFalse();
        assertThat(take(store(Strategy.TRANSACTION), user("alice", 1))).isFalse();
    }

    @ParameterizedTest
    @EnumSource
    void timeIsTheServers(Strategy strategy) {
        BucketStore store = store(strategy);
        ThrottlePolicy fast = ThrottlePolicy.of("fast", BucketSpec.of("20/s").withCapacity(1), "user");
        Charge charge = Charge.of(fast, "alice", 1);
        long token = Duration.ofMillis(50).toNanos();
        long start = System.nanoTime();
        long last = start - 2 * token;
        for (int granted = 0; granted < 10; ) {
            boolean isFull =
                    System.nanoTime() - last > token + Duration.ofMillis(1).toNanos();
            if (take(store, charge)) {
                granted++;
                last = System.nanoTime();
                assertThat(granted).isLessThanOrEqualTo((int) (1 + (last - start) / token + 1));
            } else {
                assertThat(isFull).isFalse();
            }
        }
    }

    /** Two nodes of a rolling deployment: the limit is never more than the larger one. */
    @ParameterizedTest
    @EnumSource
    void nodesWithDifferentSpecsShareABucket(Strategy strategy) {
        BucketStore store = store(strategy);
        BucketSpec larger = BucketSpec.of("7/h").withCapacity(700);
        LongAdder granted = new LongAdder();
        Threads.run(8, thread -> {
            BucketSpec own = thread % 2 == 0 ? SPEC : larger;
            for (int i = 0; i < 200; i++) {
                if (take(store, new Charge(POLICY, own, "alice", 1))) {
                    granted.increment();
                }
            }
        });
        assertThat(granted.sum()).isBetween(500L, 700L);
        assertThat(take(store, user("alice", 1))).isFalse();
    }

    /** A key without a value is a full bucket under any spec, so a fast spec must not make the value expire early. */
    @ParameterizedTest
    @EnumSource
    void aBucketIsKeptUntilItIsFullUnderTheSlowerOfTwoSpecs(Strategy strategy) {
        BucketStore store = store(strategy);
        BucketSpec slow = BucketSpec.of("10000/1d");
        BucketSpec quick = BucketSpec.of("1000/1ms");
        assertThat(take(store, new Charge(POLICY, slow, "alice", 10_000))).isTrue();
        for (int i = 0; i < 100; i++) {
            Charge charge = new Charge(POLICY, quick, "alice", 1);
            Decision decision = store.take(List.of(charge));
            if (decision.allowed()) {
                store.giveBack(decision.answers());
            }
        }
        assertThat(commands().pttl(key(strategy, user("alice", 1)))).isBetween(86_300_000L, 86_402_000L);
        assertThat(store.snapshot(new Charge(POLICY, slow, "alice", 1)).available())
                .isLessThanOrEqualTo(1_000);
        assertThat(take(store, new Charge(POLICY, slow, "alice", 1_001))).isFalse();
        assertThat(take(store, new Charge(POLICY, quick, "alice", 1))).isTrue();
        assertThat(commands().pttl(key(strategy, user("alice", 1)))).isGreaterThan(86_300_000L);
    }

    @Test
    void aScriptThatIsForgottenAllTheTimeIsNoFailure() {
        BucketStore store = store(Strategy.SCRIPT);
        LongAdder granted = new LongAdder();
        AtomicBoolean done = new AtomicBoolean();
        Threads.run(9, thread -> {
            if (thread == 8) {
                while (!done.get()) {
                    commands().scriptFlush();
                }
                return;
            }
            for (int i = 0; i < 200; i++) {
                if (take(store, user("alice", 1), user("bob", 1))) {
                    granted.increment();
                }
            }
            if (thread == 0) {
                done.set(true);
            }
        });
        assertThat(granted.sum()).isEqualTo(500);
    }

    @ParameterizedTest
    @EnumSource
    void aValueThatIsNoBucketIsAFailureAndStaysUnchanged(Strategy strategy) {
        BucketStore store = store(strategy);
        commands().lpush(key(strategy, user("list", 1)), "x".getBytes(UTF_8));
        commands().set(key(strategy, user("text", 1)), "PONG".getBytes(UTF_8));
        for (String key : List.of("list", "text")) {
            assertThatThrownBy(() -> take(store, user("alice", 1), user(key, 1)))
                    .as(key)
                    .is(TestRedis.MISCONFIGURATION);
            assertThatThrownBy(() -> store.snapshot(user(key, 1))).as(key).isInstanceOf(BackendException.class);
        }
        assertThat(commands().llen(key(strategy, user("list", 1)))).isEqualTo(1);
        assertThat(commands().get(key(strategy, user("text", 1)))).isEqualTo("PONG".getBytes(UTF_8));
    }

    /** Values with the length of a bucket and a spec, but with invalid numbers. */
    @ParameterizedTest
    @EnumSource
    void invalidNumbersAreAFailureAndGrantNothing(Strategy strategy) {
        BucketStore store = store(strategy);
        String own = RedisTickScale.of(SPEC).name();
        double later = System.currentTimeMillis() * 1e3 + 1e9;
        double[] numbers = {Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -1, 9e15, 1e300, -1e300};
        for (double number : numbers) {
            for (String spec : List.of(own, own + " 5", own + " -5", own + " +1", "1/1/1/1")) {
                assertIsNoBucket(strategy, store, later, number, spec);
                assertIsNoBucket(strategy, store, number, 1, spec);
            }
        }
        for (String spec : List.of("0/1/1/1", "1/0/1/1", "1/1/0/1", "1/1/1/0", "1/8000000000000/8000000000000/1")) {
            assertIsNoBucket(strategy, store, later, 1, spec);
        }
        for (String suffix : List.of(" 99999999999999999999", " -99999999999999999999", " +99999999999999999999")) {
            assertIsNoBucket(strategy, store, later, 1, own + suffix);
        }
    }

    private void assertIsNoBucket(Strategy strategy, BucketStore store, double at, double missing, String text) {
        byte[] name = text.getBytes(UTF_8);
        byte[] value = ByteBuffer.allocate(16 + name.length)
                .putDouble(at)
                .putDouble(missing)
                .put(name)
                .array();
        commands().set(key(strategy, user("bob", 1)), value);
        List<Charge> charges = List.of(user("bob", 1).withMaxWait(Duration.ofHours(1)));
        String what = at + " " + missing + " " + text;
        assertThatThrownBy(() -> take(store, user("bob", 1))).as(what).is(TestRedis.MISCONFIGURATION);
        assertThatThrownBy(() -> store.reserve(charges)).as(what).is(TestRedis.MISCONFIGURATION);
        assertThatThrownBy(() -> take(store, user("alice", 1), user("bob", 1)))
                .as(what)
                .is(TestRedis.MISCONFIGURATION);
        assertThat(commands().get(key(strategy, user("bob", 1)))).as(what).isEqualTo(value);
    }

    @ParameterizedTest
    @EnumSource
    void everyKeyExpiresWhenItsBucketIsFullAndIsSmall(Strategy strategy) {
        BucketStore store = store(strategy);
        var random = new SplittableRandom(1);
        for (int i = 0; i < 300; i++) {
            BucketSpec spec = Specs.randomSpec(random);
            Charge charge = new Charge(POLICY, spec, "user" + i, spec.capacity()).withMaxWait(Duration.ofDays(365));
            Decision first = store.take(List.of(charge));
            long full = first.resetAfter().toMillis();
            byte[] key = key(strategy, charge);
            long ttl = commands().pttl(key);
            if (ttl != -2) {
                assertThat(ttl).as(spec.toString()).isBetween(Math.min(1, full), full + 1_001);
            }
            Decision second = store.reserve(List.of(charge));
            store.reserve(List.of(charge));
            store.giveBack(second.answers());
            Long bytes = commands().memoryUsage(key);
            if (bytes != null) {
                assertThat(bytes - key.length).as(spec.toString()).isBetween(1L, 140L);
            }
        }
    }

    @Test
    void aBusyKeyLivesUntilItsBucketIsFull() {
        BucketStore store = store(Strategy.SCRIPT);
        Charge charge = new Charge(POLICY, BucketSpec.of("1000/1s").withCapacity(1_000_000), "alice", 70);
        for (int i = 0; i < 200; i++) {
            long before = System.nanoTime();
            long full = store.take(List.of(charge)).resetAfter().toMillis();
            long ttl = commands().pttl(key(Strategy.SCRIPT, charge));
            long elapsed = Duration.ofNanos(System.nanoTime() - before).toMillis() + 1;
            assertThat(ttl).as("take %d", i).isBetween(full - elapsed, full + 1_001);
        }
    }

    @Test
    void aLeasedKeyLivesUntilItsBucketIsFull() {
        LeasingBucketStore store = (LeasingBucketStore) store(Strategy.SCRIPT);
        BucketSpec spec = BucketSpec.of("1000/1s").withCapacity(1_000_000);
        Charge charge = Charge.of(POLICY.withSpec(spec).withLease(Duration.ofSeconds(1)), "alice", 1);
        for (int i = 0; i < 20; i++) {
            long before = System.nanoTime();
            long full = store.lease(new LeaseRequest(charge, 777)).resetAfter().toMillis();
            long ttl = commands().pttl(key(Strategy.SCRIPT, charge));
            long elapsed = Duration.ofNanos(System.nanoTime() - before).toMillis() + 1;
            assertThat(ttl).as("lease %d", i).isBetween(full - elapsed, full + 1_001);
        }
    }

    /** To set the expiry costs Redis almost as much as to write the value. */
    @Test
    void aTakeSetsTheExpiryOnlyIfAnotherOneIsDue() {
        BucketStore store = store(Strategy.SCRIPT);
        Charge brief = new Charge(POLICY, BucketSpec.of("1000/1ms").withCapacity(10_000_000), "alice", 1);
        byte[] key = key(Strategy.SCRIPT, brief);
        await().until(() -> {
            take(store, brief);
            commands().pexpire(key, Duration.ofHours(1));
            return take(store, brief) && commands().pttl(key) > 3_000_000;
        });
        assertThat(take(store, new Charge(POLICY, brief.spec(), "alice", 5_000_000)))
                .isTrue();
        assertThat(commands().pttl(key)).isBetween(1L, 6_001L);
    }

    @ParameterizedTest
    @EnumSource
    void refundsDoNotMakeAKeyLiveLonger(Strategy strategy) {
        BucketStore store = store(strategy);
        Charge one = Charge.of(ThrottlePolicy.of("refunded", BucketSpec.of("5/1h"), "user"), "alice", 1);
        Decision underWay = store.take(List.of(one));
        for (int i = 0; i < 50; i++) {
            Decision next = store.take(List.of(one));
            store.giveBack(underWay.answers());
            underWay = next;
        }
        assertThat(commands().pttl(key(strategy, one))).isBetween(600_000L, 12 * 60_000 + 1_001L);
        store.giveBack(underWay.answers());
        assertThat(commands().exists(key(strategy, one))).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void aDenialWritesNothing(Strategy strategy) {
        BucketStore store = store(strategy);
        assertThat(take(store, user("alice", 500))).isTrue();
        byte[] value = commands().get(key(strategy, user("alice", 1)));
        assertThat(take(store, user("bob", 1), user("alice", 1), user("carol", 501)))
                .isFalse();
        assertThat(commands().get(key(strategy, user("alice", 1)))).isEqualTo(value);
        assertThat(commands().exists(key(strategy, user("carol", 1)))).isZero();
        if (strategy != Strategy.SCRIPT_A_KEY) {
            assertThat(commands().exists(key(strategy, user("bob", 1)))).isZero();
        }
    }

    @Test
    void theScriptKeepsTheFormThatTheDocumentationShows() {
        assertThat(take(store(Strategy.SCRIPT), user("alice", 2))).isTrue();
        assertThat(KeptValue.text(commands().get(keys.key(user("alice", 1)))))
                .matches("\\d{16} 7200000000 1/3600000000/500/1");
    }
}
