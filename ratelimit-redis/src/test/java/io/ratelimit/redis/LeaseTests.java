package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.lease.LeasingBucketStore.LeaseRequest;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** One instance with leases on a real Redis, on a clock of the test. */
class LeaseTests {

    private static final Duration LEASE = Duration.ofMillis(100);
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("400/1s")).withLease(LEASE);

    private final AtomicLong micros = new AtomicLong(1_795_000_000_000_000L);
    private final ManualTimeSource time = new ManualTimeSource();
    private final RedisKeys keys = TestRedis.keys();
    private final ObservedStore redis = new ObservedStore(keys, micros::get);
    private boolean busy;
    private final FailoverBucketStore store = new FailoverBucketStore(
            "Redis",
            redis,
            BucketStore.local(time),
            1,
            policy -> FailureRule.DENY,
            new Deadline(time, Duration.ofSeconds(60)),
            renewal -> {
                if (busy) {
                    throw new RejectedExecutionException();
                }
                renewal.run();
            });

    private void advance(Duration passed) {
        time.advance(passed);
        micros.addAndGet(passed.toNanos() / 1_000);
    }

    private Decision take(long cost) {
        return store.take(List.of(Charge.of(POLICY, "", cost)));
    }

    /** Returns how many calls are allowed before one is denied, 1,000 at most. */
    private int takeAll() {
        int taken = 0;
        while (taken < 1_000 && take(1).allowed()) {
            taken++;
        }
        return taken;
    }

    /** Takes until this instance has a lease of more than the given tokens. */
    private void warmUp(long tokens) {
        while (store.leased(POLICY) <= tokens) {
            assertThat(take(1).allowed()).isTrue();
        }
    }

    private long missing() {
        byte[] value = TestRedis.shared().connection().sync().get(keys.key(Charge.of(POLICY, "", 1)));
        RedisTickScale ticks = RedisTickScale.of(POLICY.spec());
        return RedisBucketState.read(value, ticks, micros.get()).missing() / ticks.perToken();
    }

    @Test
    void aColdKeyTakesOneTokenAndAHotKeyDoublesItsLeasesUpToAnEighthOfTheCapacity() {
        assertThat(take(1).allowed()).isTrue();
        assertThat(redis.asked).isEmpty();
        assertThat(missing()).isEqualTo(1);
        for (int i = 0; i < 120; i++) {
            assertThat(take(1).allowed()).isTrue();
        }
        assertThat(redis.asked).startsWith(2L, 4L, 8L, 16L, 32L, 50L);
        assertThat(redis.calls).isLessThan(12);
    }

    @Test
    void aKeyThatIsUsedRarelyAsksForNoLease() {
        for (int i = 0; i < 20; i++) {
            assertThat(take(1).allowed()).isTrue();
            advance(LEASE);
        }
        assertThat(redis.asked).isEmpty();
        assertThat(redis.calls).isEqualTo(20);
    }

    @Test
    void aRequestAsksForWhatIsUsedInHalfALease() {
        for (int i = 0; i < 1_000; i++) {
            assertThat(take(1).allowed()).isTrue();
            advance(Duration.ofMillis(5));
        }
        List<Long> last = redis.asked;
        assertThat(last.subList(last.size() - 10, last.size())).allMatch(tokens -> tokens >= 9 && tokens <= 11);
        assertThat(redis.calls).isBetween(100, 200);
    }

    @Test
    void aLeaseEndsATimeAfterItsCallThatADriftOfTheClockCannotExceed() {
        warmUp(20);
        redis.down = true;
        advance(LEASE.minusNanos(100_001));
        assertThat(take(1).allowed()).isTrue();
        advance(Duration.ofNanos(1));
        assertThat(store.leased(POLICY)).isZero();
        assertThat(take(1).allowed()).isFalse();
    }

    /** Redis counts from the moment of its take, which is after the call was sent. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLeaseCountsFromTheMomentItsCallWasSent(boolean inBackground) {
        warmUp(20);
        busy = true;
        while (store.leased(POLICY) > (inBackground ? 1 : 0)) {
            take(1);
        }
        busy = false;
        redis.onTheWay = () -> time.advance(LEASE.dividedBy(2));
        assertThat(take(1).allowed()).isTrue();
        redis.onTheWay = () -> {};
        time.advance(LEASE.dividedBy(2).minusNanos(100_001));
        assertThat(store.leased(POLICY)).isPositive();
        time.advance(Duration.ofNanos(1));
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void manyThreadsNeverTakeMoreThanTheBucketHas() throws Exception {
        FailoverBucketStore shared = new FailoverBucketStore(
                "Redis",
                TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), false, micros::get),
                BucketStore.local(time),
                1,
                policy -> FailureRule.DENY,
                new Deadline(time, Duration.ofSeconds(60)));
        List<Charge> charge = List.of(Charge.of(POLICY.withSpec(BucketSpec.of("100000/1d")), "", 1));
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try {
            long taken = 0;
            for (Future<Long> each : threads.invokeAll(Collections.<Callable<Long>>nCopies(4, () -> {
                long own = 0;
                while (shared.take(charge).allowed()) {
                    own++;
                }
                return own;
            }))) {
                taken += each.get();
            }
            assertThat(taken).isBetween(50_000L, 100_000L);
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void leasedTokensAreMissingInRedisWithTheRefillOfTheLease() {
        warmUp(20);
        long leased = store.leased(POLICY);
        assertThat(missing()).isGreaterThanOrEqualTo(40 + leased); // 40 tokens come back within the lease
        assertThat(KeptValue.text(TestRedis.shared().connection().sync().get(keys.key(Charge.of(POLICY, "", 1)))))
                .contains(" ^");
    }

    /** Another spec counts only after the last lease. */
    @Test
    void aShorterLeaseOfAnotherInstanceKeepsTheEndOfTheLongerOne() {
        warmUp(20);
        Charge shorter = Charge.of(POLICY.withLease(LEASE.dividedBy(2)), "", 1);
        redis.lease(new LeaseRequest(shorter, 10));
        assertThat(KeptValue.text(TestRedis.shared().connection().sync().get(keys.key(shorter))))
                .endsWith("@" + (micros.get() + LEASE.toNanos() / 1_000));
    }

    /** An instance without leases may let calls wait, whose tokens are no others'. */
    @Test
    void whileACallOfAnotherInstanceWaitsNothingIsLeased() {
        Charge all = Charge.of(POLICY, "", 400).withMaxWait(Duration.ofSeconds(1));
        Decision first = redis.reserve(List.of(all));
        assertThat(redis.reserve(List.of(Charge.of(POLICY, "", 4).withMaxWait(Duration.ofSeconds(1))))
                        .waitNanos())
                .isEqualTo(10_000_000);
        redis.giveBack(first.taken());

        LeaseRequest early = new LeaseRequest(Charge.of(POLICY, "", 1), 10);
        redis.lease(early);
        assertThat(early.grant()).isNull();
        advance(Duration.ofMillis(10));
        LeaseRequest late = new LeaseRequest(Charge.of(POLICY, "", 1), 10);
        redis.lease(late);
        assertThat(late.grant()).isNotNull();
    }

    /** The lease begins in the time that gives these tokens back: with both, more than a full bucket would be granted. */
    @Test
    void tokensTakenBeforeALeaseDoNotComeBackFromItsHold() {
        Charge charge = Charge.of(POLICY, "", 1);
        Decision before = redis.take(List.of(Charge.of(POLICY, "", 39)));
        LeaseRequest lease = new LeaseRequest(charge, 50);
        redis.lease(lease);
        assertThat(lease.grant().tokens()).isEqualTo(50);
        assertThat(missing()).isEqualTo(40 + 50);

        redis.giveBack(before.taken());
        assertThat(missing()).isEqualTo(40 + 50);
        advance(LEASE.minusMillis(1));
        int taken = 0;
        while (redis.take(List.of(charge)).allowed()) {
            taken++;
        }
        assertThat(taken + lease.grant().tokens()).isBetween(390L, 400L);
    }

    /**
     * When the tokens before a lease come back, the lease keeps its place, and what was taken after it moves before it. Time then
     * pays for the latter first: the tokens of the lease don't count as missing before it.
     */
    @Test
    void tokensTakenAfterALeaseComeBackAsIfTheyHadBeenTakenBeforeIt() {
        Charge charge = Charge.of(POLICY, "", 1);
        Decision before = redis.take(List.of(Charge.of(POLICY, "", 40)));
        LeaseRequest lease = new LeaseRequest(charge, 50);
        redis.lease(lease);
        Decision after = redis.take(List.of(Charge.of(POLICY, "", 40)));
        assertThat(missing()).isEqualTo(40 + 50 + 40);
        redis.giveBack(before.taken());

        advance(LEASE.minusMillis(1));
        int taken = 0;
        while (redis.take(List.of(charge)).allowed()) {
            taken++;
        }
        redis.giveBack(after.taken());
        while (redis.take(List.of(charge)).allowed()) {
            taken++;
        }
        assertThat(taken + lease.grant().tokens()).isBetween(390L, 400L);
    }

    @Test
    void aLeaseIsAtMostHalfOfWhatIsLeft() {
        LeaseRequest lease = new LeaseRequest(Charge.of(POLICY, "", 1), 400);
        redis.lease(lease);
        assertThat(lease.grant().tokens()).isEqualTo((400 - 40) / 2);
    }

    @Test
    void whenTheClockOfRedisIsSetBackAnotherSpecStillWaitsForTheEndOfTheLease() {
        redis.lease(new LeaseRequest(Charge.of(POLICY, "", 1), 50));
        micros.addAndGet(-3_600_000_000L);
        Charge slower = Charge.of(POLICY.withSpec(BucketSpec.of("40/1s").withCapacity(400)), "", 1);
        redis.take(List.of(slower));
        RedisTickScale ticks = RedisTickScale.of(slower.spec());
        byte[] value = TestRedis.shared().connection().sync().get(keys.key(slower));
        long promised = RedisBucketState.read(value, ticks, micros.get()).promised();
        assertThat(Duration.ofNanos(ticks.microsUntil(promised, micros.get()) * 1_000))
                .isBetween(LEASE, LEASE.plusMillis(1));
    }

    @Test
    void tokensThatAreNotUsedComeBackWithTime() {
        warmUp(20);
        advance(Duration.ofSeconds(1));
        assertThat(store.leased(POLICY)).isZero();
        assertThat(missing()).isZero();
        assertThat(take(400).allowed()).isTrue();
    }

    @Test
    void whileRedisIsUnavailableTheLeaseIsUsedUpAndThenTheRuleDecides() {
        warmUp(20);
        long leased = store.leased(POLICY);
        redis.down = true;
        for (long i = 0; i < leased; i++) {
            assertThat(take(1).answers().get(0).fallback()).isFalse();
        }
        Decision denied = take(1);
        assertThat(denied.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(denied.answers().get(0).fallback()).isTrue();
    }

    @Test
    void aLostReplyCostsTokensAndGrantsNone() {
        warmUp(20);
        busy = true;
        while (store.leased(POLICY) > 0) {
            take(1);
        }
        long before = missing();
        int calls = redis.calls;
        redis.loseNext = true;
        assertThat(take(1).allowed()).isFalse();
        assertThat(redis.calls).as("not repeated").isEqualTo(calls + 1);
        assertThat(missing()).isGreaterThan(before);
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void tokensGoBackToTheirLeaseWhileItIsValid() {
        warmUp(20);
        Decision taken = take(3);
        long leased = store.leased(POLICY);
        int calls = redis.calls;
        store.giveBack(taken.taken());
        assertThat(store.leased(POLICY)).isEqualTo(leased + 3);
        assertThat(redis.calls).isEqualTo(calls);
    }

    @Test
    void tokensOfALeaseThatHasEndedGoBackToRedisButNotBelowTheLeases() {
        warmUp(20);
        Decision taken = take(3);
        advance(LEASE);
        long before = missing();
        int calls = redis.calls;
        store.giveBack(taken.taken());
        assertThat(redis.calls).isEqualTo(calls + 1);
        assertThat(missing()).isBetween(before - 3, before);
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void aCallIsSettledInItsLeaseWhileItIsValidAndThenInRedis() {
        warmUp(20);
        Decision taken = take(5);
        long leased = store.leased(POLICY);
        int calls = redis.calls;
        assertThat(store.settle(taken.taken().get(0), 2)).isTrue();
        assertThat(store.leased(POLICY)).isEqualTo(leased + 3);
        assertThat(redis.calls).isEqualTo(calls);

        Decision late = take(5);
        advance(LEASE);
        long before = missing();
        assertThat(store.settle(late.taken().get(0), 2)).isTrue();
        assertThat(redis.calls).isEqualTo(calls + 1);
        assertThat(missing()).isBetween(before - 3, before);
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void aCallThatAnotherPolicyDeniesTakesNothingOfTheLease() {
        ThrottlePolicy narrow = ThrottlePolicy.of("narrow", BucketSpec.of("1/1d"));
        warmUp(20);
        List<Charge> both = List.of(Charge.of(POLICY, "", 1), Charge.of(narrow, "", 1));
        long leased = store.leased(POLICY);
        Decision allowed = store.take(both);
        assertThat(allowed.allowed()).isTrue();
        assertThat(allowed.answers())
                .extracting(answer -> answer.policy().name())
                .containsExactly("api", "narrow");
        assertThat(store.leased(POLICY)).isEqualTo(leased - 1);
        assertThat(store.take(both).allowed()).isFalse();
        assertThat(store.leased(POLICY)).isEqualTo(leased - 1);
    }

    @Test
    void aCallOfSeveralPoliciesTakesALeaseInTheSameScript() {
        ThrottlePolicy wide = ThrottlePolicy.of("wide", BucketSpec.of("100000/1s"));
        for (int i = 0; i < 100; i++) {
            assertThat(store.take(List.of(Charge.of(POLICY, "", 1), Charge.of(wide, "", 1)))
                            .allowed())
                    .isTrue();
        }
        assertThat(redis.asked).startsWith(2L, 4L, 8L);
        assertThat(store.snapshot(Charge.of(wide, "", 1)).available()).isEqualTo(99_900);
    }

    @Test
    void anEmptyBucketIsAskedAQuarterOfALeaseLaterAgain() {
        takeAll();
        Decision denied = take(1);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(LEASE.dividedBy(4));
        int calls = redis.calls;
        advance(LEASE.dividedBy(4).minusNanos(1));
        assertThat(take(1).allowed()).isFalse();
        assertThat(redis.calls).isEqualTo(calls);
        advance(Duration.ofNanos(1));
        assertThat(take(1).allowed()).isTrue();
    }

    @Test
    void aDenialFromMemoryContainsTheTimeUntilTheBucketHasTheTokens() {
        warmUp(20);
        while (redis.take(List.of(Charge.of(POLICY, "", 1))).allowed()) {} // by another instance
        busy = true;
        while (take(1).allowed()) {}
        int calls = redis.calls;
        advance(Duration.ofMillis(5));
        Decision denied = take(100);
        assertThat(redis.calls).isEqualTo(calls);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(245));
        assertThat(denied.resetAfter()).isEqualTo(Duration.ofMillis(995));
        assertThat(denied.remaining()).isZero();
    }

    @Test
    void aDenialFromMemoryContainsTheTimeUntilADebtIsPaid() {
        Decision first = take(1);
        store.settle(first.taken().get(0), 1_000);
        assertThat(take(1).allowed()).isFalse();
        int calls = redis.calls;
        Decision denied = take(1);
        assertThat(redis.calls).isEqualTo(calls);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofNanos(601 * 2_500_000L));
        assertThat(denied.resetAfter()).isEqualTo(Duration.ofMillis(2_500));
        advance(Duration.ofMillis(20));
        assertThat(take(1).retryAfter()).isEqualTo(Duration.ofNanos(593 * 2_500_000L));
    }

    /** The next batch pays the debt first, and then has too few tokens. */
    @Test
    void aDenialFromMemoryContainsTheBatchesUntilADebtIsPaidAndTheTokensAreThere() {
        ThrottlePolicy batches = ThrottlePolicy.of(
                        "batches", BucketSpec.of("10/1s").withCapacity(40).withRefill(BucketSpec.Refill.INTERVAL))
                .withLease(LEASE);
        List<Charge> ten = List.of(Charge.of(batches, "", 10));
        Decision first = store.take(List.of(Charge.of(batches, "", 1)));
        store.settle(first.taken().get(0), 44);
        Decision byRedis = store.take(ten);
        int calls = redis.calls;
        Decision fromMemory = store.take(ten);
        assertThat(redis.calls).isEqualTo(calls);
        assertThat(byRedis.retryAfter()).isBetween(Duration.ofMillis(1_001), Duration.ofSeconds(2));
        assertThat(fromMemory.retryAfter()).isEqualTo(byRedis.retryAfter());
    }

    @Test
    void theLastTokensOfABurstAreTakenOneByOne() {
        int taken = takeAll();
        for (int i = 0; i < 50; i++) {
            advance(Duration.ofMillis(25));
            taken += takeAll();
        }
        assertThat(taken).isBetween(750, 400 + 50 * 10);
    }

    /** A lease would reach into the next period, when the bucket may be full again: Redis gives none, but has tokens. */
    @Test
    void beforeTheEndOfAPeriodAllTokensAreTakenOneByOne() {
        ThrottlePolicy batches = POLICY.withSpec(BucketSpec.of("400/1s").withRefill(BucketSpec.Refill.INTERVAL));
        List<Charge> charge = List.of(Charge.of(batches, "", 1));
        advance(Duration.ofMillis(800));
        while (store.leased(batches) <= 20) {
            assertThat(store.take(charge).allowed()).isTrue();
        }
        advance(Duration.ofMillis(150));
        assertThat(store.leased(batches)).as("ended").isZero();
        for (int i = 0; i < 200; i++) {
            assertThat(store.take(charge).allowed()).isTrue();
        }
        assertThat(store.leased(batches)).isZero();
        advance(Duration.ofMillis(100));
        for (int i = 0; i < 100; i++) {
            assertThat(store.take(charge).allowed()).isTrue();
        }
        assertThat(store.leased(batches)).isPositive();
    }

    /** A lease lasts for a time of Redis's clock, and such a bucket counts by days. */
    @Test
    void aBucketWithCalendarRefillIsNeverLeased() {
        ThrottlePolicy daily = POLICY.withSpec(BucketSpec.of("100000/1d").withCalendar(ZoneOffset.UTC));
        for (int i = 0; i < 50; i++) {
            assertThat(store.take(List.of(Charge.of(daily, "", 1))).allowed()).isTrue();
        }
        assertThat(redis.asked).isEmpty();
        assertThat(redis.calls).isEqualTo(50);
    }

    @Test
    void tokensOfADroppedLeaseGoBackToRedis() {
        warmUp(20);
        Decision taken = take(5);
        store.reset(Charge.of(POLICY, "", 1));
        warmUp(20);
        assertGoesBackToRedis(taken);
    }

    /** Tokens of the lease before the last two would be out of reach, and missing until they come back with time. */
    @Test
    void tokensOfAReplacedLeaseGoBackToRedis() {
        warmUp(20);
        Decision taken = take(5);
        busy = true;
        for (int i = 0; i < 2; i++) {
            while (store.leased(POLICY) > 0) {
                assertThat(take(1).allowed()).isTrue();
            }
            assertThat(take(1).allowed()).isTrue();
        }
        assertGoesBackToRedis(taken);
    }

    private void assertGoesBackToRedis(Decision taken) {
        long leased = store.leased(POLICY);
        int calls = redis.calls;
        store.giveBack(taken.taken());
        assertThat(redis.calls).isEqualTo(calls + 1);
        assertThat(store.leased(POLICY)).isEqualTo(leased);
    }

    /** A denied call of two buckets writes a bucket whose clock ran ahead, as it was before the call's lease. */
    @Test
    void aDenialThatCorrectsABucketAheadOfTheClockKeepsItsLeases() {
        warmUp(20);
        long before = missing();
        String text = KeptValue.text(TestRedis.shared().connection().sync().get(keys.key(Charge.of(POLICY, "", 1))));
        micros.addAndGet(-3_600_000_000L);
        Charge charge = Charge.of(POLICY, "", 1);
        Charge tooMuch = Charge.of(ThrottlePolicy.of("narrow", BucketSpec.of("1/1d")), "", 1);
        redis.take(List.of(tooMuch));
        assertThat(redis.take(List.of(charge, tooMuch), List.of(new LeaseRequest(charge, 50)))
                        .allowed())
                .isFalse();
        assertThat(missing()).isEqualTo(before);
        assertThat(leasedTicks(
                        KeptValue.text(TestRedis.shared().connection().sync().get(keys.key(charge)))))
                .isEqualTo(leasedTicks(text));
    }

    private static String leasedTicks(String value) {
        return value.substring(value.indexOf('^'), value.indexOf('@'));
    }

    @Test
    void aCostAboveTheLeaseIsTakenFromRedis() {
        warmUp(20);
        long leased = store.leased(POLICY);
        int calls = redis.calls;
        assertThat(take(leased + 1).allowed()).isTrue();
        assertThat(redis.calls).isEqualTo(calls + 1);
        assertThat(take(401).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    /** The tokens of the lease are used, although another call asked Redis meanwhile. */
    @Test
    void aCostAboveTheLeaseDoesNotDropIt() {
        warmUp(20);
        long leased = store.leased(POLICY);
        assertThat(take(leased + 1).allowed()).isTrue();
        assertThat(take(1).allowed()).isTrue();
        assertThat(store.leased(POLICY))
                .as("more than the last lease")
                .isGreaterThan(redis.asked.get(redis.asked.size() - 1));
    }

    @Test
    void aBucketOfOneTokenIsNeverLeased() {
        ThrottlePolicy single = POLICY.withSpec(BucketSpec.of("1/1s"));
        for (int i = 0; i < 5; i++) {
            assertThat(store.take(List.of(Charge.of(single, "", 1))).allowed()).isTrue();
            assertThat(store.take(List.of(Charge.of(single, "", 1))).allowed()).isFalse();
            advance(Duration.ofSeconds(1));
        }
        assertThat(redis.asked).isEmpty();
    }

    /** The bucket has what it had: nothing comes twice, and nothing is lost. */
    @Test
    void aClockOfRedisThatIsSetBackAnHourKeepsTheBucketWithItsLeases() {
        warmUp(20);
        long leased = store.leased(POLICY);
        long before = missing();
        micros.addAndGet(-3_600_000_000L);
        assertThat(missing()).isEqualTo(before);
        assertThat(takeAll()).isBetween(250, 400 - (int) (before - leased));
        advance(Duration.ofMillis(1_001));
        assertThat(missing()).isZero();
        assertThat(takeAll()).isBetween(250, 400);
    }

    /** Redis failed over or restarted without its data, or its clock was set forward: the bucket is full again. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBucketThatIsLostIsGrantedOnceMoreWithTheLeasesThatAreOut(boolean byItsClock) {
        warmUp(20);
        long leased = store.leased(POLICY);
        if (byItsClock) {
            micros.addAndGet(3_600_000_000L);
        } else {
            TestRedis.shared().connection().sync().del(keys.key(Charge.of(POLICY, "", 1)));
        }
        assertThat((long) takeAll()).isBetween(250L, 400 + leased);
        advance(Duration.ofSeconds(2));
        assertThat(takeAll()).isBetween(250, 400);
    }

    @Test
    void aChangedSpecUsesNoLeaseOfTheOldOne() {
        warmUp(20);
        int calls = redis.calls;
        Charge changed = Charge.of(POLICY.withSpec(BucketSpec.of("500/1s")), "", 1);
        assertThat(store.take(List.of(changed)).allowed()).isTrue();
        assertThat(redis.calls).isEqualTo(calls + 1);
    }

    /** The new lease would be held for less time than the old one lasts. */
    @Test
    void aChangedLeaseUsesNoneOfTheOldOne() {
        warmUp(20);
        int calls = redis.calls;
        Charge changed = Charge.of(POLICY.withLease(LEASE.dividedBy(2)), "", 1);
        assertThat(store.take(List.of(changed)).allowed()).isTrue();
        assertThat(redis.calls).isEqualTo(calls + 1);
    }

    @Test
    void aDenialFromMemoryTakesNothingOfTheLeaseOfAnotherPolicy() {
        ThrottlePolicy narrow =
                ThrottlePolicy.of("narrow", BucketSpec.of("1/1d")).withLease(LEASE);
        warmUp(20);
        List<Charge> both = List.of(Charge.of(POLICY, "", 1), Charge.of(narrow, "", 1));
        assertThat(store.take(both).allowed()).isTrue();
        assertThat(store.take(both).allowed()).isFalse();
        long leased = store.leased(POLICY);
        int calls = redis.calls;
        assertThat(store.take(both).allowed()).isFalse();
        assertThat(redis.calls).isEqualTo(calls);
        assertThat(store.leased(POLICY)).isEqualTo(leased);
    }

    @Test
    void aResetDropsTheLease() {
        warmUp(20);
        store.reset(Charge.of(POLICY, "", 1));
        assertThat(store.leased(POLICY)).isZero();
        assertThat(take(1).allowed()).isTrue();
        assertThat(missing()).isEqualTo(1);
    }

    /** The clock of a frozen virtual machine may stand still; that of Redis doesn't. */
    @Test
    void aMachineThatWasFrozenDropsItsOldLeaseWithTheNextOne() {
        warmUp(40);
        micros.addAndGet(1_000_000);
        long left = store.leased(POLICY);
        while (store.leased(POLICY) <= left) {
            assertThat(take(1).allowed()).isTrue();
            left = Math.min(left, store.leased(POLICY));
        }
        assertThat(store.leased(POLICY)).isEqualTo(redis.asked.get(redis.asked.size() - 1));
    }

    @Test
    void aBusyInstanceRenewsItsLeaseWithTheNextCall() {
        busy = true;
        warmUp(20);
        int calls = redis.calls;
        long leased = store.leased(POLICY);
        for (long i = 0; i <= leased; i++) {
            assertThat(take(1).allowed()).isTrue();
        }
        assertThat(redis.calls).isEqualTo(calls + 1);
        assertThat(store.leased(POLICY)).isPositive();
    }
}
