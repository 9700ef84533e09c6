package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Instances whose clocks differ in time and speed: all use the clock of the server. */
@Tag("slow")
class RedisClocksTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final long SECOND = 1_000_000;
    private static final long DAY = 86_400 * SECOND;
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("10/1s").withCapacity(40), "user");

    private final AtomicLong server = new AtomicLong(1_795_000_000_000_000L);
    private final RedisKeys keys = TestRedis.keys();

    /** Returns an instance. Its breaker, deadline and remembered denials use the given clock. */
    private FailoverBucketStore instance(String strategy, ManualTimeSource clock) {
        return new FailoverBucketStore(
                "Redis",
                store(strategy),
                BucketStore.local(clock),
                1,
                policy -> FailureRule.DENY,
                new Deadline(clock, TIMEOUT));
    }

    private BucketStore store(String strategy) {
        return strategy.equals("script")
                ? TestRedis.shared().scriptStore(keys, TIMEOUT, false, server::get)
                : TestRedis.shared().transactionStore(keys, TIMEOUT, server::get);
    }

    private byte[] kept() {
        return TestRedis.shared().connection().sync().get(keys.key(Charge.of(POLICY, "alice", 1)));
    }

    private static Decision take(BucketStore store, long cost) {
        return store.take(List.of(Charge.of(POLICY, "alice", cost)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void clocksThatAreHalfAMinuteApartMakeNoDifference(String strategy) {
        ManualTimeSource ahead = new ManualTimeSource();
        ahead.advance(Duration.ofSeconds(30));
        FailoverBucketStore one = instance(strategy, new ManualTimeSource());
        FailoverBucketStore other = instance(strategy, ahead);

        assertThat(take(one, 40).allowed()).isTrue();
        Decision denied = take(other, 5);
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(500));

        server.addAndGet(SECOND / 2);
        ahead.advance(Duration.ofMillis(500));
        assertThat(take(other, 5).allowed()).isTrue();
        assertThat(take(one, 1).allowed()).isFalse();
    }

    /** G1 by the server's clock. No instance denies longer than a remembered denial lasts by its own clock. */
    @RepeatedTest(10)
    void clocksOfDifferentSpeedNeitherGrantNorLock(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        String strategy = run.getCurrentRepetition() % 2 == 0 ? "script" : "transaction";
        List<ManualTimeSource> clocks = List.of(new ManualTimeSource(), new ManualTimeSource());
        List<FailoverBucketStore> instances =
                clocks.stream().map(clock -> instance(strategy, clock)).toList();
        long began = server.get();
        long granted = 0;
        for (int i = 0; i < 400; i++) {
            long step = random.nextLong(SECOND / 5);
            server.addAndGet(step);
            clocks.get(0).advance(Duration.ofNanos(1_000 * step * 9 / 10));
            clocks.get(1).advance(Duration.ofNanos(1_000 * step * 3));
            long cost = 1 + random.nextInt(4);
            granted += take(instances.get(random.nextInt(2)), cost).allowed() ? cost : 0;
        }
        double most = 40 + 10 * (server.get() - began + 1) / (double) SECOND;
        assertThat((double) granted).as("seed %d", run.getCurrentRepetition()).isBetween(0.9 * most - 40, most);
    }

    /** The bucket grants nothing first, and then the tokens that come back. Denied calls delay nothing. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aClockThatRanAheadAndIsSetRightLocksForNoLongerThanTheTimeToFull(String strategy) {
        BucketStore store = store(strategy);
        server.addAndGet(30 * DAY);
        assertThat(take(store, 35).allowed()).isTrue();
        server.addAndGet(-30 * DAY);

        assertThat(take(store, 6).retryAfter()).isEqualTo(Duration.ofMillis(100));
        server.addAndGet(SECOND / 20);
        assertThat(take(store, 6).allowed()).isFalse();
        server.addAndGet(SECOND / 20 + 1);
        assertThat(take(store, 6).allowed()).isTrue();
        assertThat(take(store, 1).allowed()).isFalse();
        server.addAndGet(4 * SECOND);
        assertThat(take(store, 40).allowed()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void tokensTakenAheadStayTakenDuringAnOutage(String strategy) {
        BucketStore store = store(strategy);
        server.addAndGet(30 * DAY);
        Charge patient = Charge.of(POLICY, "alice", 40).withMaxWait(Duration.ofSeconds(10));
        store.reserve(List.of(patient));
        assertThat(store.reserve(List.of(patient)).waitNanos()).isEqualTo(4_000 * SECOND);
        server.addAndGet(-30 * DAY);

        assertThat(take(store, 1).retryAfter()).isEqualTo(Duration.ofMillis(4_100));
        server.addAndGet(4 * SECOND + 1);
        assertThat(take(store, 1).allowed()).isFalse();
        server.addAndGet(SECOND / 10);
        assertThat(take(store, 1).allowed()).isTrue();
    }

    /** The batch that has come doesn't come again, so a call that waits waits for the one after it. */
    @ParameterizedTest
    @CsvSource({"script, INTERVAL", "transaction, INTERVAL", "script, CALENDAR", "transaction, CALENDAR"})
    void aClockThatIsSetBackOverABatchShortensNoWait(String strategy, Refill refill) {
        BucketSpec daily = BucketSpec.of("2/1d");
        BucketSpec spec = refill == Refill.CALENDAR ? daily.withCalendar(ZoneOffset.UTC) : daily.withRefill(refill);
        Charge patient =
                Charge.of(ThrottlePolicy.of("daily", spec, "user"), "alice", 1).withMaxWait(Duration.ofDays(2));
        BucketStore store = store(strategy);
        store.take(List.of(patient));
        server.set((server.get() / DAY + 1) * DAY + SECOND);
        store.take(List.of(patient));
        store.take(List.of(patient));

        server.addAndGet(-30 * SECOND);
        Decision decision = store.reserve(List.of(patient));
        assertThat(decision.allowed()).isTrue();
        assertThat(Duration.ofNanos(decision.waitNanos()))
                .isEqualTo(Duration.ofDays(1).minusSeconds(1));
    }

    /** Like a clock that is corrected now and then, and servers that replace each other. */
    @ParameterizedTest
    @ValueSource(strings = {"script", "transaction"})
    void aClockThatIsSetBackByLessThanAMinuteStandsStill(String strategy) {
        BucketStore store = store(strategy);
        assertThat(take(store, 40).allowed()).isTrue();
        server.addAndGet(-60 * SECOND);
        byte[] kept = kept();
        assertThat(take(store, 1).allowed()).isFalse();
        assertThat(kept()).isEqualTo(kept);
        server.addAndGet(60 * SECOND);
        assertThat(take(store, 1).allowed()).isFalse();
        server.addAndGet(SECOND / 10);
        assertThat(take(store, 1).allowed()).isTrue();
    }

    /** The time of the bucket stands still until the clock reaches it again, or runs on from there. */
    @ParameterizedTest
    @CsvSource({"script, 30", "transaction, 30", "script, 3600", "transaction, 3600"})
    void callsAroundAStepOfTheClockAreSettledToTheToken(String strategy, long seconds) {
        BucketStore store = store(strategy);
        Answer before = answer(store, 10);
        server.addAndGet(-seconds * SECOND);
        assertThat(store.settle(before, 3)).isTrue();
        assertThat(available(store)).isEqualTo(37);

        Answer first = answer(store, 20);
        Answer second = answer(store, 10);
        assertThat(store.settle(first, 5)).isTrue();
        assertThat(available(store)).isEqualTo(22);
        assertThat(store.settle(second, 41)).isTrue();
        assertThat(available(store)).isZero();
        assertThat(take(store, 1).allowed()).as("the debt is 9 tokens").isFalse();
        assertThat(store.settle(answerAhead(store, 2), 1)).isTrue();
        server.addAndGet(seconds < 60 ? seconds * SECOND : 1);
        server.addAndGet(SECOND + 9 * SECOND / 10);
        assertThat(available(store)).isEqualTo(9);
    }

    /** In memory the clock never goes back: it stands still where Redis's does. */
    @RepeatedTest(20)
    void settlementsAreThoseInMemoryWhileTheClockIsSetBack(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketStore redis = store(run.getCurrentRepetition() % 2 == 0 ? "script" : "transaction");
        ManualTimeSource clock = new ManualTimeSource();
        BucketStore local = BucketStore.local(clock);
        long latest = server.get();
        List<List<Answer>> open = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            server.set((random.nextInt(10) == 0 ? Math.max(latest, server.get()) : server.get())
                    + random.nextLong(SECOND / 4));
            clock.advance(Duration.ofNanos(1_000 * Math.max(server.get() - latest, 0)));
            latest = Math.max(latest, server.get());
            String step = "seed %d, step %d".formatted(run.getCurrentRepetition(), i);
            if (random.nextInt(3) == 0 && !open.isEmpty()) {
                List<Answer> taken = open.remove(random.nextInt(open.size()));
                long cost = random.nextLong(3 * taken.get(0).charge().cost());
                redis.settle(taken.get(0), cost);
                local.settle(taken.get(1), cost);
            } else {
                long cost = 1 + random.nextInt(10);
                Decision decision = take(redis, cost);
                Decision expected = take(local, cost);
                assertThat(decision.allowed()).as(step).isEqualTo(expected.allowed());
                if (decision.allowed()) {
                    open.add(List.of(
                            decision.answers().get(0), expected.answers().get(0)));
                    boolean back = random.nextInt(3) == 0 && latest - server.get() < 40 * SECOND;
                    server.addAndGet(back ? -random.nextLong(10 * SECOND) : 0);
                }
            }
            assertThat(available(redis)).as(step).isEqualTo(available(local));
        }
    }

    private static Answer answer(BucketStore store, long cost) {
        Decision decision = take(store, cost);
        assertThat(decision.allowed()).isTrue();
        return decision.answers().get(0);
    }

    private static Answer answerAhead(BucketStore store, long cost) {
        Charge patient = Charge.of(POLICY, "alice", cost).withMaxWait(Duration.ofMinutes(2));
        return store.reserve(List.of(patient)).answers().get(0);
    }

    private static long available(BucketStore store) {
        return store.snapshot(Charge.of(POLICY, "alice", 1)).available();
    }

    /** Time counts while the clock goes forward, and no batch comes twice, however the clock is set. */
    @RepeatedTest(20)
    void aClockThatIsSetToAndFroGrantsNoMoreThanItWentForward(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketStore store = store(run.getCurrentRepetition() % 2 == 0 ? "script" : "transaction");
        BucketSpec spec = new BucketSpec(
                Rate.of("10/" + (1 + random.nextInt(120)) + "s"),
                40,
                random.nextBoolean() ? Refill.INTERVAL : Refill.GREEDY);
        Charge charge = Charge.of(ThrottlePolicy.of("api", spec), "", 1);
        long period = spec.rate().period().toNanos() / 1_000;
        long forward = 0;
        long granted = 0;
        for (int i = 0; i < 300; i++) {
            boolean back = random.nextInt(4) == 0;
            long step = random.nextLong(back ? 4 * period + 90 * SECOND : period);
            server.addAndGet(back ? -step : step);
            forward += back ? 0 : step;
            while (store.take(List.of(charge)).allowed()) {
                granted++;
            }
        }
        double most = 40 + 10 * (forward + period) / (double) period;
        assertThat((double) granted)
                .as("seed %d, %s", run.getCurrentRepetition(), spec)
                .isLessThanOrEqualTo(most);
        server.addAndGet(60 * SECOND + period + spec.timeToFull().toNanos() / 1_000);
        assertThat(store.snapshot(charge).available()).isEqualTo(40);
    }
}
