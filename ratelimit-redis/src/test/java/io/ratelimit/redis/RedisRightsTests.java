package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Shares;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.PatientAwaits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The documented rights suffice, and each is needed. */
class RedisRightsTests {

    @AutoClose
    private static final TestRedis redis = TestRedis.start();

    private static final ThrottlePolicy USER = ThrottlePolicy.of("per-user", BucketSpec.of("5/1h"), "user");
    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", BucketSpec.of("7/1h"));

    enum Strategy {
        SCRIPT,
        TRANSACTION;

        List<String> rights() {
            return this == SCRIPT ? RedisRights.OF_SCRIPTS : RedisRights.OF_TRANSACTIONS;
        }
    }

    /** A strategy, and a right that it needs. */
    private record Needed(Strategy strategy, String right) {}

    static Stream<Needed> needed() {
        return Stream.of(Strategy.values())
                .flatMap(strategy -> strategy.rights().stream().map(right -> new Needed(strategy, right)))
                .filter(needed -> !needed.right.equals("+info"));
    }

    @BeforeEach
    void empty() {
        redis.connection().sync().flushall();
        redis.connection().sync().scriptFlush();
    }

    private static List<String> with(List<String> rights) {
        List<String> all = new ArrayList<>(rights);
        all.addAll(RedisRights.TO_CONNECT);
        return all;
    }

    private static RedisStorage buckets(Strategy strategy) {
        RedisClientFactory application = PlainClients.at(redis.port(), RedisRights.USER, RedisRights.PASSWORD);
        Deadline request = new Deadline(new SystemTimeSource(), Duration.ofSeconds(5));
        return strategy == Strategy.SCRIPT
                ? RedisStorage.withScripts(application, "ratelimit:shop", "", request)
                : RedisStorage.withTransactions(application, "ratelimit:shop", "", request);
    }

    /** Makes each kind of call that an application makes. */
    private static void use(RedisStorage buckets) {
        PatientAwaits.awaitSelfTest(buckets);
        BucketStore store = buckets.store();
        Charge user = Charge.of(USER, "alice", 2);
        List<Charge> both = List.of(user, Charge.of(GLOBAL, "", 2));
        Decision taken = store.take(both);
        assertThat(taken.allowed()).isTrue();
        assertThat(store.take(List.of(Charge.of(USER, "alice", 4))).allowed()).isFalse();
        assertThat(store.reserve(List.of(user.withMaxWait(Duration.ofHours(1)))).allowed())
                .isTrue();
        store.giveBack(taken.answers());
        assertThat(store.snapshot(user).available()).isEqualTo(3);
        store.reset(user);
        assertThat(store.snapshot(user).available()).isEqualTo(5);
    }

    @ParameterizedTest
    @EnumSource
    void theDocumentedRightsSuffice(Strategy strategy) {
        RedisRights.allow(redis, with(strategy.rights()));
        try (RedisStorage buckets = buckets(strategy)) {
            assertThatCode(() -> use(buckets)).doesNotThrowAnyException();
            assertThat(buckets.memory().join().policy()).isEqualTo("noeviction");
        }
    }

    @ParameterizedTest
    @MethodSource("needed")
    void withoutOneOfThemItIsMisconfigured(Needed needed) {
        List<String> rights = with(needed.strategy.rights());
        rights.remove(needed.right);
        RedisRights.allow(redis, rights);
        try (RedisStorage buckets = buckets(needed.strategy)) {
            assertThatThrownBy(() -> use(buckets)).is(TestRedis.MISCONFIGURATION);
        }
    }

    @ParameterizedTest
    @EnumSource
    void withoutInfoOnlyItsMemoryIsUnknown(Strategy strategy) {
        List<String> rights = with(strategy.rights());
        rights.remove("+info");
        RedisRights.allow(redis, rights);
        try (RedisStorage buckets = buckets(strategy)) {
            use(buckets);
            assertThatThrownBy(() -> buckets.memory().join()).cause().is(TestRedis.MISCONFIGURATION);
        }
    }

    /** Takes from the pool and from two lanes, and gives back. */
    private static void useShares(RedisStorage buckets) {
        PatientAwaits.awaitSelfTest(buckets);
        BucketStore store = buckets.store();
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("10/1h"))
                .withShares(Shares.forKeys(BucketSpec.of("2/1h"), 2, List.of("user")));
        assertThat(store.take(List.of(Charge.of(policy, "", 6))).allowed()).isTrue();
        for (String key : List.of("alice", "bob")) {
            Charge charge = Charge.of(policy, "", 2).guaranteedTo(key);
            Decision taken = store.take(List.of(charge));
            assertThat(taken.allowed()).isTrue();
            assertThat(store.take(List.of(charge)).allowed()).isFalse();
            store.giveBack(taken.answers());
        }
        store.reset(Charge.of(policy, "", 1));
    }

    @Test
    void theDocumentedRightsSufficeForShares() {
        List<String> rights = with(RedisRights.OF_SCRIPTS);
        rights.addAll(RedisRights.OF_SHARES);
        RedisRights.allow(redis, rights);
        try (RedisStorage buckets = buckets(Strategy.SCRIPT)) {
            assertThatCode(() -> useShares(buckets)).doesNotThrowAnyException();
        }
    }

    @ParameterizedTest
    @EnumSource
    void theDocumentedRightsSufficeForChangesForAllInstances(Strategy strategy) {
        List<String> rights = with(strategy.rights());
        rights.addAll(RedisRights.OF_CHANGES);
        RedisRights.allow(redis, rights);
        try (RedisStorage buckets = buckets(strategy)) {
            PatientAwaits.awaitSelfTest(buckets);
            change(buckets.changes());
        }
    }

    @ParameterizedTest
    @MethodSource("ofChanges")
    void withoutOneOfThemChangesForAllInstancesFailAndBucketsDont(Needed needed) {
        List<String> rights = with(needed.strategy.rights());
        rights.addAll(RedisRights.OF_CHANGES);
        rights.remove(needed.right);
        RedisRights.allow(redis, rights);
        try (RedisStorage buckets = buckets(needed.strategy)) {
            use(buckets);
            assertThatThrownBy(() -> change(buckets.changes()))
                    .cause()
                    .is(TestRedis.MISCONFIGURATION)
                    .hasMessageContaining("NOPERM");
        }
    }

    static Stream<Needed> ofChanges() {
        return Stream.of(Strategy.values())
                .flatMap(strategy -> RedisRights.OF_CHANGES.stream().map(right -> new Needed(strategy, right)));
    }

    private static void change(ChangeBoard changes) {
        changes.put("api", "a").join();
        assertThat(changes.read(List.of("api")).join().changes()).containsEntry("api", "a");
        assertThat(changes.remove("api").join()).isTrue();
    }
}
