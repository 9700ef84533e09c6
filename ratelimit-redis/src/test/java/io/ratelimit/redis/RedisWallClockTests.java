package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Calendar refill in Redis for instances whose clocks are wrong or step: the server's time alone decides. */
class RedisWallClockTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final Instant NOON = Instant.parse("2026-03-10T12:00:00Z");
    private static final BucketSpec DAILY = BucketSpec.of("5/day").withCalendar(ZoneOffset.UTC);
    private static final Charge CHARGE = charge(DAILY, 1);
    private static final Charge PLAIN = Charge.of(ThrottlePolicy.of("plain", BucketSpec.of("10/1d")), "", 1);

    private final AtomicLong server = new AtomicLong(NOON.getEpochSecond() * 1_000_000);
    private final RedisKeys keys = TestRedis.keys();

    private static Charge charge(BucketSpec spec, long cost) {
        return Charge.of(ThrottlePolicy.of("quota", spec, "user"), "alice", cost);
    }

    private static ManualTimeSource clock(Instant wallClock) {
        ManualTimeSource clock = new ManualTimeSource();
        clock.setWallClock(wallClock);
        return clock;
    }

    /** Starts an instance whose clock is so many days ahead of the server's, or behind. */
    private BucketStore start(String strategy, long daysAhead) {
        return start(strategy, clock(serverTime().plus(Duration.ofDays(daysAhead))));
    }

    private BucketStore start(String strategy, TimeSource clock) {
        return strategy.equals("script")
                ? scriptStore(server::get, false, clock)
                : TestRedis.shared().transactionStore(keys, TIMEOUT, server::get);
    }

    private RedisScriptBucketStore scriptStore(LongSupplier serverTime, boolean oneKeyPerScript, TimeSource clock) {
        return TestRedis.shared().scriptStore(keys, TIMEOUT, oneKeyPerScript, serverTime, clock);
    }

    private RedisScriptBucketStore wrongScriptStore() {
        return scriptStore(server::get, false, clock(NOON.plus(Duration.ofDays(40))));
    }

    private Instant serverTime() {
        return Instant.ofEpochSecond(0, 1_000 * server.get());
    }

    private void pass(Duration time) {
        server.addAndGet(time.toNanos() / 1_000);
    }

    private static int taken(BucketStore store, int calls) {
        int taken = 0;
        for (int i = 0; i < calls; i++) {
            taken += store.take(List.of(CHARGE)).allowed() ? 1 : 0;
        }
        return taken;
    }

    private static void isDeniedFor(Duration time, BucketStore store, Charge charge) {
        Decision denied = store.take(List.of(charge));
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.retryAfter()).isBetween(time, time.plusNanos(4_000));
    }

    @ParameterizedTest
    @CsvSource({
        "script, 3",
        "script, 40",
        "script, 400",
        "script, -3",
        "script, -70",
        "transaction, 400",
        "transaction, -70"
    })
    void anInstanceWithAWrongClockGrantsNothingMoreHoweverOftenItStarts(String strategy, long days) {
        assertThat(taken(start(strategy, 0), 6)).isEqualTo(5);
        for (int i = 0; i < 4; i++) {
            BucketStore wrong = start(strategy, days);
            isDeniedFor(Duration.ofHours(12), wrong, CHARGE);
            assertThat(taken(wrong, 8)).isZero();
            assertThat(taken(start(strategy, 0), 3)).isZero();
        }
    }

    /** The right instance isn't sent back by the other one, which lacks nothing itself. */
    @ParameterizedTest
    @CsvSource({"script, 40", "script, -70", "transaction, 40", "transaction, -70"})
    void afterAWrongInstanceUsedAKeyTheNextDayBringsItsTokensToAll(String strategy, long days) {
        BucketStore right = start(strategy, 0);
        BucketStore wrong = start(strategy, days);
        assertThat(taken(wrong, 6)).isEqualTo(5);
        isDeniedFor(Duration.ofHours(12), right, CHARGE);

        pass(Duration.ofHours(12).minusNanos(1_000));
        assertThat(taken(wrong, 1) + taken(right, 1)).isZero();
        pass(Duration.ofNanos(1_000));
        assertThat(taken(right, 3)).isEqualTo(3);
        assertThat(taken(wrong, 3)).isEqualTo(2);
        isDeniedFor(Duration.ofHours(24), right, CHARGE);
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aClockThatStepsThereAndBackGrantsNothingMore(String strategy) {
        ManualTimeSource clock = clock(NOON);
        BucketStore store = start(strategy, clock);
        assertThat(taken(store, 6)).isEqualTo(5);
        for (int i = 0; i < 4; i++) {
            for (long days : new long[] {40, 0, -40, 0}) {
                clock.setWallClock(NOON.plus(Duration.ofDays(days)));
                assertThat(taken(store, 4)).isZero();
                assertThat(taken(start(strategy, clock), 2)).isZero();
                isDeniedFor(Duration.ofHours(12), store, CHARGE);
            }
        }
    }

    /** The machine slept, or its clock runs at another speed. */
    @ParameterizedTest
    @ValueSource(longs = {0, 1, 90})
    void anInstanceWhoseClockStandsStillOrRacesFollowsTheServer(long days) {
        ManualTimeSource clock = clock(NOON);
        BucketStore store = start("script", clock);
        for (int i = 0; i < 10; i++) {
            assertThat(taken(store, 6)).isEqualTo(5);
            isDeniedFor(Duration.ofHours(12), store, CHARGE);
            pass(Duration.ofDays(30));
            clock.advance(Duration.ofDays(days));
        }
    }

    /** A take ahead, a look, a give, a settlement and a reset, each as the first call of an instance. */
    @Test
    void everyCallOfAWrongInstanceDoesWhatThatOfARightOneDoes() {
        assertThat(wrongScriptStore().reserve(List.of(CHARGE.withCost(5))).waitNanos())
                .isZero();
        Decision ahead = wrongScriptStore().reserve(List.of(CHARGE.withMaxWait(Duration.ofDays(2))));
        assertThat(ahead.waitNanos()).isBetween(hours(12), hours(12) + 4_000);
        wrongScriptStore().giveBack(ahead.answers());
        assertThat(available()).isZero();
        wrongScriptStore().reset(CHARGE);
        assertThat(available()).isEqualTo(5);

        Answer taken =
                wrongScriptStore().take(List.of(CHARGE.withCost(4))).answers().get(0);
        wrongScriptStore().settle(taken, 1);
        assertThat(available()).isEqualTo(4);
        Answer more = wrongScriptStore().take(List.of(CHARGE)).answers().get(0);
        wrongScriptStore().settle(more, 12);
        BucketSnapshot owing = wrongScriptStore().snapshot(CHARGE);
        assertThat(owing).isEqualTo(start("script", 0).snapshot(CHARGE));
        assertThat(owing.resetAfter())
                .isBetween(Duration.ofHours(60), Duration.ofHours(60).plusNanos(4_000));
        isDeniedFor(Duration.ofHours(36), wrongScriptStore(), CHARGE.withCost(2));
    }

    private long available() {
        return wrongScriptStore().snapshot(CHARGE).available();
    }

    private static long hours(long hours) {
        return Duration.ofHours(hours).toNanos();
    }

    @Test
    void severalBucketsAreTakenFromOnceOrNotAtAll() {
        Charge other = Charge.of(PLAIN.policy(), "other", 3);
        List<Charge> charges = List.of(PLAIN, CHARGE, other, CHARGE.withCost(2));
        assertThat(wrongScriptStore().take(charges).allowed()).isTrue();
        assertThat(wrongScriptStore().snapshot(PLAIN).available()).isEqualTo(9);
        assertThat(wrongScriptStore().snapshot(other).available()).isEqualTo(7);
        assertThat(available()).isEqualTo(2);

        isDeniedFor(Duration.ofHours(12), wrongScriptStore(), CHARGE.withCost(3));
        Decision denied = wrongScriptStore().take(charges);
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.retryNanos()).isBetween(hours(12), hours(12) + 4_000);
        Decision taken = wrongScriptStore().take(List.of(other, CHARGE));
        wrongScriptStore().giveBack(taken.answers());
        assertThat(wrongScriptStore().snapshot(other).available()).isEqualTo(7);
        assertThat(available()).isEqualTo(2);
    }

    /** The clock of Redis itself, which is the machine's here. */
    @Test
    void theRealClockOfRedisCountsForWrongInstances() {
        Charge monthly = charge(BucketSpec.of("5/month").withCalendar(ZoneOffset.UTC), 1);
        int month = Instant.now().atOffset(ZoneOffset.UTC).getMonthValue();
        int taken = 0;
        for (long days : new long[] {-400, -70, -31, 0, 31, 40, 400}) {
            TimeSource clock = clock(Instant.now().plus(Duration.ofDays(days)));
            for (int i = 0; i < 6; i++) {
                BucketStore store = scriptStore(() -> RedisBucketStore.SERVER_TIME, false, clock);
                taken += store.take(List.of(monthly)).allowed() ? 1 : 0;
            }
        }
        boolean sameMonth = month == Instant.now().atOffset(ZoneOffset.UTC).getMonthValue();
        assertThat(taken).isBetween(5, sameMonth ? 5 : 10);
    }

    /** The script takes the cost as often as it fits. */
    @Test
    void takesOfAWrongInstanceThatShareACallAreThoseOfARightOne() {
        ScriptCalls takes = wrongScriptStore().script();
        ScriptReply reply = takes.startTakes(CHARGE.withCost(2), 4).join();
        assertThat(reply.decided(4)).isEqualTo(4);
        for (int i = 0; i < 4; i++) {
            Answer answer = takes.answer(CHARGE.withCost(2), i, reply);
            assertThat(answer.allowed()).isEqualTo(i < 2);
            assertThat(answer.resetNanos()).isBetween(hours(12), hours(12) + 4_000);
        }
        assertThat(available()).isEqualTo(1);
    }

    @Test
    void aRepeatedCallIsNoFailureAndARememberedDenialEndsByTheServersTime() {
        ManualTimeSource clock = clock(NOON.minus(Duration.ofDays(40)));
        FailoverBucketStore store = new FailoverBucketStore(
                "Redis",
                start("script", clock),
                BucketStore.local(clock),
                1,
                policy -> FailureRule.ALLOW,
                new Deadline(clock, TIMEOUT));
        for (int i = 0; i < 50; i++) {
            assertThat(taken(store, 7)).isEqualTo(5);
            isDeniedFor(Duration.ofHours(12), store, CHARGE);
            pass(Duration.ofDays(30));
            clock.advance(Duration.ofSeconds(10));
        }
        assertThat(taken(store, 6)).isEqualTo(5);
        clock.setWallClock(NOON.plus(Duration.ofDays(400)));
        clock.advance(Duration.ofMillis(500));
        isDeniedFor(Duration.ofHours(12).minusMillis(500), store, CHARGE);
        assertThat(store.backend().state().condition()).isEqualTo(Backend.Condition.UP);
    }

    @Test
    void aServerWhoseClockIsSetDuringEachCallFailsTheCallAndNothingIsTaken() {
        AtomicInteger calls = new AtomicInteger();
        RedisScriptBucketStore store = scriptStore(
                () -> server.get() + (calls.incrementAndGet() % 2) * 40 * 24 * 3_600_000_000L,
                false,
                clock(Instant.EPOCH));
        List<Charge> charges = List.of(PLAIN, CHARGE);
        assertThatThrownBy(() -> store.take(charges))
                .isExactlyInstanceOf(BackendException.class)
                .hasMessageContaining("clock of Redis");
        assertThat(calls).hasValueBetween(2, 6);
        charges.forEach(
                charge -> assertThat(TestRedis.shared().connection().sync().get(keys.key(charge)))
                        .isNull());
    }

    /** No thread waits for the reply: the call fails because of another bucket. */
    @Test
    void tokensOfACallThatFailsComeBackWhateverTheClocksShow() {
        assertThat(start("script", 0).take(List.of(CHARGE)).allowed()).isTrue();
        TestRedis.shared().connection().sync().set(keys.key(PLAIN), new byte[] {1});
        AtomicInteger calls = new AtomicInteger();
        RedisScriptBucketStore store = scriptStore(
                () -> server.get() - (calls.incrementAndGet() > 2 ? 24 : 0) * 24 * 3_600_000_000L,
                true,
                clock(serverTime()));
        assertThatThrownBy(() -> store.take(List.of(CHARGE.withCost(3), PLAIN))).isInstanceOf(BackendException.class);
        await().until(() -> calls.get() == 4); // the give, and its repetition
        await().until(() -> store.snapshot(CHARGE).available() == 4);
    }
}
