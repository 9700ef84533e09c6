package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
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

/** One instance with leases on a remote store, on a clock of the test. */
public abstract class LeaseContract {

    protected static final Duration LEASE = Duration.ofMillis(100);
    protected static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("400/1s")).withLease(LEASE);

    protected final AtomicLong micros = new AtomicLong(1_795_000_000_000_000L);
    private final ManualTimeSource time = new ManualTimeSource();
    protected final LeasePlace place;
    protected final ObservedStore remote;
    private boolean busy;
    private final FailoverBucketStore store;

    /** @param place one that has no bucket */
    protected LeaseContract(LeasePlace place) {
        this.place = place;
        this.remote = new ObservedStore(place.store(micros::get));
        this.store = new FailoverBucketStore(
                "store",
                remote,
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
    }

    protected void advance(Duration passed) {
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
    protected void warmUp(long tokens) {
        while (store.leased(POLICY) <= tokens) {
            assertThat(take(1).allowed()).isTrue();
        }
    }

    protected long missing() {
        Charge charge = Charge.of(POLICY, "", 1);
        LeasePlace.Kept kept = place.kept(place.value(charge), POLICY.spec(), micros.get());
        return kept.missing() / kept.perToken();
    }

    @Test
    void aColdKeyTakesOneTokenAndAHotKeyDoublesItsLeasesUpToAnEighthOfTheCapacity() {
        assertThat(take(1).allowed()).isTrue();
        assertThat(remote.asked).isEmpty();
        assertThat(missing()).isEqualTo(1);
        for (int i = 0; i < 120; i++) {
            assertThat(take(1).allowed()).isTrue();
        }
        assertThat(remote.asked).startsWith(2L, 4L, 8L, 16L, 32L, 50L);
        assertThat(remote.calls).isLessThan(12);
    }

    @Test
    void aKeyThatIsUsedRarelyAsksForNoLease() {
        for (int i = 0; i < 20; i++) {
            assertThat(take(1).allowed()).isTrue();
            advance(LEASE);
        }
        assertThat(remote.asked).isEmpty();
        assertThat(remote.calls).isEqualTo(20);
    }

    @Test
    void aRequestAsksForWhatIsUsedInHalfALease() {
        for (int i = 0; i < 1_000; i++) {
            assertThat(take(1).allowed()).isTrue();
            advance(Duration.ofMillis(5));
        }
        List<Long> last = remote.asked;
        assertThat(last.subList(last.size() - 10, last.size())).allMatch(tokens -> tokens >= 9 && tokens <= 11);
        assertThat(remote.calls).isBetween(100, 200);
    }

    @Test
    void aLeaseEndsATimeAfterItsCallThatADriftOfTheClockCannotExceed() {
        warmUp(20);
        remote.down = true;
        advance(LEASE.minusNanos(100_001));
        assertThat(take(1).allowed()).isTrue();
        advance(Duration.ofNanos(1));
        assertThat(store.leased(POLICY)).isZero();
        assertThat(take(1).allowed()).isFalse();
    }

    /** The store counts from the moment of its take, which is after the call was sent. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLeaseCountsFromTheMomentItsCallWasSent(boolean inBackground) {
        warmUp(20);
        busy = true;
        while (store.leased(POLICY) > (inBackground ? 1 : 0)) {
            take(1);
        }
        busy = false;
        remote.onTheWay = () -> time.advance(LEASE.dividedBy(2));
        assertThat(take(1).allowed()).isTrue();
        remote.onTheWay = () -> {};
        time.advance(LEASE.dividedBy(2).minusNanos(100_001));
        assertThat(store.leased(POLICY)).isPositive();
        time.advance(Duration.ofNanos(1));
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void manyThreadsNeverTakeMoreThanTheBucketHas() throws Exception {
        FailoverBucketStore shared = new FailoverBucketStore(
                "store",
                place.store(micros::get),
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
    void leasedTokensAreMissingInTheStoreWithTheRefillOfTheLease() {
        warmUp(20);
        long leased = store.leased(POLICY);
        assertThat(missing()).isGreaterThanOrEqualTo(40 + leased); // 40 tokens come back within the lease
    }

    /** Until then nothing is leased under it, as while a call waits. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anotherSpecCountsFromTheEndOfTheLongestLeaseOn(boolean clockIsSetBack) {
        remote.lease(new LeaseRequest(Charge.of(POLICY, "", 1), 50));
        remote.lease(new LeaseRequest(Charge.of(POLICY.withLease(LEASE.dividedBy(2)), "", 1), 10));
        micros.addAndGet(clockIsSetBack ? -3_600_000_000L : 0);
        Charge slower = Charge.of(POLICY.withSpec(BucketSpec.of("40/1s").withCapacity(400)), "", 1);
        remote.take(List.of(slower));
        advance(LEASE.minusMillis(1));
        LeaseRequest early = new LeaseRequest(slower, 10);
        remote.lease(early);
        assertThat(early.grant()).isNull();
        advance(Duration.ofMillis(2));
        LeaseRequest late = new LeaseRequest(slower, 10);
        remote.lease(late);
        assertThat(late.grant()).isNotNull();
    }

    /** An instance without leases may let calls wait, whose tokens are no others'. */
    @Test
    void whileACallOfAnotherInstanceWaitsNothingIsLeased() {
        Charge all = Charge.of(POLICY, "", 400).withMaxWait(Duration.ofSeconds(1));
        Decision first = remote.reserve(List.of(all));
        assertThat(remote.reserve(List.of(Charge.of(POLICY, "", 4).withMaxWait(Duration.ofSeconds(1))))
                        .waitNanos())
                .isEqualTo(10_000_000);
        remote.giveBack(first.taken());

        LeaseRequest early = new LeaseRequest(Charge.of(POLICY, "", 1), 10);
        remote.lease(early);
        assertThat(early.grant()).isNull();
        advance(Duration.ofMillis(10));
        LeaseRequest late = new LeaseRequest(Charge.of(POLICY, "", 1), 10);
        remote.lease(late);
        assertThat(late.grant()).isNotNull();
    }

    /** The lease begins in the time that gives these tokens back: with both, more than a full bucket would be granted. */
    @Test
    void tokensTakenBeforeALeaseDoNotComeBackFromItsHold() {
        Charge charge = Charge.of(POLICY, "", 1);
        Decision before = remote.take(List.of(Charge.of(POLICY, "", 39)));
        LeaseRequest lease = new LeaseRequest(charge, 50);
        remote.lease(lease);
        assertThat(lease.grant().tokens()).isEqualTo(50);
        assertThat(missing()).isEqualTo(40 + 50);

        remote.giveBack(before.taken());
        assertThat(missing()).isEqualTo(40 + 50);
        advance(LEASE.minusMillis(1));
        int taken = 0;
        while (remote.take(List.of(charge)).allowed()) {
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
        Decision before = remote.take(List.of(Charge.of(POLICY, "", 40)));
        LeaseRequest lease = new LeaseRequest(charge, 50);
        remote.lease(lease);
        Decision after = remote.take(List.of(Charge.of(POLICY, "", 40)));
        assertThat(missing()).isEqualTo(40 + 50 + 40);
        remote.giveBack(before.taken());

        advance(LEASE.minusMillis(1));
        int taken = 0;
        while (remote.take(List.of(charge)).allowed()) {
            taken++;
        }
        remote.giveBack(after.taken());
        while (remote.take(List.of(charge)).allowed()) {
            taken++;
        }
        assertThat(taken + lease.grant().tokens()).isBetween(390L, 400L);
    }

    @Test
    void aLeaseIsAtMostHalfOfWhatIsLeft() {
        LeaseRequest lease = new LeaseRequest(Charge.of(POLICY, "", 1), 400);
        remote.lease(lease);
        assertThat(lease.grant().tokens()).isEqualTo((400 - 40) / 2);
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
    void whileTheStoreIsUnavailableTheLeaseIsUsedUpAndThenTheRuleDecides() {
        warmUp(20);
        long leased = store.leased(POLICY);
        remote.down = true;
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
        int calls = remote.calls;
        remote.loseNext = true;
        assertThat(take(1).allowed()).isFalse();
        assertThat(remote.calls).as("not repeated").isEqualTo(calls + 1);
        assertThat(missing()).isGreaterThan(before);
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void tokensGoBackToTheirLeaseWhileItIsValid() {
        warmUp(20);
        Decision taken = take(3);
        long leased = store.leased(POLICY);
        int calls = remote.calls;
        store.giveBack(taken.taken());
        assertThat(store.leased(POLICY)).isEqualTo(leased + 3);
        assertThat(remote.calls).isEqualTo(calls);
    }

    @Test
    void tokensOfALeaseThatHasEndedGoBackToTheStoreButNotBelowTheLeases() {
        warmUp(20);
        Decision taken = take(3);
        advance(LEASE);
        long before = missing();
        int calls = remote.calls;
        store.giveBack(taken.taken());
        assertThat(remote.calls).isEqualTo(calls + 1);
        assertThat(missing()).isBetween(before - 3, before);
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void aCallIsSettledInItsLeaseWhileItIsValidAndThenInTheStore() {
        warmUp(20);
        Decision taken = take(5);
        long leased = store.leased(POLICY);
        int calls = remote.calls;
        assertThat(store.settle(taken.taken().get(0), 2)).isTrue();
        assertThat(store.leased(POLICY)).isEqualTo(leased + 3);
        assertThat(remote.calls).isEqualTo(calls);

        Decision late = take(5);
        advance(LEASE);
        long before = missing();
        assertThat(store.settle(late.taken().get(0), 2)).isTrue();
        assertThat(remote.calls).isEqualTo(calls + 1);
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
    void tokensOfALeaseThatEndsBeforeAnotherPolicyDeniesGoBackToTheStore() {
        ThrottlePolicy narrow = ThrottlePolicy.of("narrow", BucketSpec.of("1/1d"));
        assertThat(store.take(List.of(Charge.of(narrow, "", 1))).allowed()).isTrue();
        warmUp(20);
        int calls = remote.calls;
        remote.onTheWay = () -> advance(LEASE);
        Decision denied = store.take(List.of(Charge.of(POLICY, "", 5), Charge.of(narrow, "", 1)));
        assertThat(denied.allowed()).isFalse();
        assertThat(remote.calls).as("the take and the return").isEqualTo(calls + 2);
    }

    @Test
    void aCallOfSeveralPoliciesTakesALeaseInTheSameScript() {
        ThrottlePolicy wide = ThrottlePolicy.of("wide", BucketSpec.of("100000/1s"));
        for (int i = 0; i < 100; i++) {
            assertThat(store.take(List.of(Charge.of(POLICY, "", 1), Charge.of(wide, "", 1)))
                            .allowed())
                    .isTrue();
        }
        assertThat(remote.asked).startsWith(2L, 4L, 8L);
        assertThat(store.snapshot(Charge.of(wide, "", 1)).available()).isEqualTo(99_900);
    }

    @Test
    void anEmptyBucketIsAskedAQuarterOfALeaseLaterAgain() {
        takeAll();
        Decision denied = take(1);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(LEASE.dividedBy(4));
        int calls = remote.calls;
        advance(LEASE.dividedBy(4).minusNanos(1));
        assertThat(take(1).allowed()).isFalse();
        assertThat(remote.calls).isEqualTo(calls);
        advance(Duration.ofNanos(1));
        assertThat(take(1).allowed()).isTrue();
    }

    /** A bean or a change of the limit may give one that is never leased. */
    @Test
    void aLimitThatIsFullSoonerThanALeaseEndsIsNotDeniedForAQuarterOfTheLease() {
        List<Charge> one = List.of(Charge.of(POLICY.withLease(Duration.ofSeconds(10)), "", 1));
        while (store.take(one).allowed()) {}
        advance(Duration.ofMillis(63));
        assertThat(store.take(one).allowed()).isTrue();
    }

    @Test
    void aDenialFromMemoryContainsTheTimeUntilTheBucketHasTheTokens() {
        warmUp(20);
        while (remote.take(List.of(Charge.of(POLICY, "", 1))).allowed()) {} // by another instance
        busy = true;
        while (take(1).allowed()) {}
        int calls = remote.calls;
        advance(Duration.ofMillis(5));
        Decision denied = take(100);
        assertThat(remote.calls).isEqualTo(calls);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(245));
        assertThat(denied.resetAfter()).isEqualTo(Duration.ofMillis(995));
        assertThat(denied.remaining()).isZero();
    }

    @Test
    void aDenialFromMemoryContainsTheTimeUntilADebtIsPaid() {
        Decision first = take(1);
        store.settle(first.taken().get(0), 1_000);
        assertThat(take(1).allowed()).isFalse();
        int calls = remote.calls;
        Decision denied = take(1);
        assertThat(remote.calls).isEqualTo(calls);
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
        Decision byTheStore = store.take(ten);
        int calls = remote.calls;
        Decision fromMemory = store.take(ten);
        assertThat(remote.calls).isEqualTo(calls);
        assertThat(byTheStore.retryAfter()).isBetween(Duration.ofMillis(1_001), Duration.ofSeconds(2));
        assertThat(fromMemory.retryAfter()).isEqualTo(byTheStore.retryAfter());
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

    /** A lease would reach into the next period, when the bucket may be full again: the store gives none, but has tokens. */
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

    /** A lease lasts for a time of the store's clock, and such a bucket counts by days. */
    @Test
    void aBucketWithCalendarRefillIsNeverLeased() {
        ThrottlePolicy daily = POLICY.withSpec(BucketSpec.of("100000/1d").withCalendar(ZoneOffset.UTC));
        for (int i = 0; i < 50; i++) {
            assertThat(store.take(List.of(Charge.of(daily, "", 1))).allowed()).isTrue();
        }
        assertThat(remote.asked).isEmpty();
        assertThat(remote.calls).isEqualTo(50);
    }

    @Test
    void tokensOfADroppedLeaseGoBackToTheStore() {
        warmUp(20);
        Decision taken = take(5);
        store.reset(Charge.of(POLICY, "", 1));
        warmUp(20);
        assertGoesBackToTheStore(taken);
    }

    /** Tokens of the lease before the last two would be out of reach, and missing until they come back with time. */
    @Test
    void tokensOfAReplacedLeaseGoBackToTheStore() {
        warmUp(20);
        Decision taken = take(5);
        busy = true;
        for (int i = 0; i < 2; i++) {
            while (store.leased(POLICY) > 0) {
                assertThat(take(1).allowed()).isTrue();
            }
            assertThat(take(1).allowed()).isTrue();
        }
        assertGoesBackToTheStore(taken);
    }

    private void assertGoesBackToTheStore(Decision taken) {
        long leased = store.leased(POLICY);
        int calls = remote.calls;
        store.giveBack(taken.taken());
        assertThat(remote.calls).isEqualTo(calls + 1);
        assertThat(store.leased(POLICY)).isEqualTo(leased);
    }

    @Test
    void aCostAboveTheLeaseIsTakenFromTheStore() {
        warmUp(20);
        long leased = store.leased(POLICY);
        int calls = remote.calls;
        assertThat(take(leased + 1).allowed()).isTrue();
        assertThat(remote.calls).isEqualTo(calls + 1);
        assertThat(take(401).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    /** The tokens of the lease are used, although another call asked the store meanwhile. */
    @Test
    void aCostAboveTheLeaseDoesNotDropIt() {
        warmUp(20);
        busy = true;
        take(5); // the rest of the lease before
        long leased = store.leased(POLICY);
        int calls = remote.calls;
        assertThat(take(leased + 50).allowed()).isTrue();
        assertThat(take(1).allowed()).isTrue();
        assertThat(store.leased(POLICY)).isEqualTo(leased - 1);
        assertThat(remote.calls).isEqualTo(calls + 1);
    }

    @Test
    void aBucketOfOneTokenIsNeverLeased() {
        ThrottlePolicy single = POLICY.withSpec(BucketSpec.of("1/1s"));
        for (int i = 0; i < 5; i++) {
            assertThat(store.take(List.of(Charge.of(single, "", 1))).allowed()).isTrue();
            assertThat(store.take(List.of(Charge.of(single, "", 1))).allowed()).isFalse();
            advance(Duration.ofSeconds(1));
        }
        assertThat(remote.asked).isEmpty();
    }

    /** The bucket has what it had: nothing comes twice, and nothing is lost. */
    @Test
    void aClockOfTheStoreThatIsSetBackAnHourKeepsTheBucketWithItsLeases() {
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

    /** The store failed over or restarted without its data, or its clock was set forward: the bucket is full again. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBucketThatIsLostIsGrantedOnceMoreWithTheLeasesThatAreOut(boolean byItsClock) {
        warmUp(20);
        long leased = store.leased(POLICY);
        if (byItsClock) {
            micros.addAndGet(3_600_000_000L);
        } else {
            place.remove(Charge.of(POLICY, "", 1));
        }
        assertThat((long) takeAll()).isBetween(250L, 400 + leased);
        advance(Duration.ofSeconds(2));
        assertThat(takeAll()).isBetween(250, 400);
    }

    @Test
    void aChangedSpecUsesNoLeaseOfTheOldOne() {
        warmUp(20);
        int calls = remote.calls;
        Charge changed = Charge.of(POLICY.withSpec(BucketSpec.of("500/1s")), "", 1);
        assertThat(store.take(List.of(changed)).allowed()).isTrue();
        assertThat(remote.calls).isEqualTo(calls + 1);
    }

    /** The new lease would be held for less time than the old one lasts. */
    @Test
    void aChangedLeaseUsesNoneOfTheOldOne() {
        warmUp(20);
        int calls = remote.calls;
        Charge changed = Charge.of(POLICY.withLease(LEASE.dividedBy(2)), "", 1);
        assertThat(store.take(List.of(changed)).allowed()).isTrue();
        assertThat(remote.calls).isEqualTo(calls + 1);
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
        int calls = remote.calls;
        assertThat(store.take(both).allowed()).isFalse();
        assertThat(remote.calls).isEqualTo(calls);
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

    /** The clock of a frozen virtual machine may stand still; that of the store doesn't. */
    @Test
    void aMachineThatWasFrozenDropsItsOldLeaseWithTheNextOne() {
        warmUp(40);
        micros.addAndGet(1_000_000);
        long left = store.leased(POLICY);
        while (store.leased(POLICY) <= left) {
            assertThat(take(1).allowed()).isTrue();
            left = Math.min(left, store.leased(POLICY));
        }
        assertThat(store.leased(POLICY)).isEqualTo(remote.asked.get(remote.asked.size() - 1));
    }

    @Test
    void aBusyInstanceRenewsItsLeaseWithTheNextCall() {
        busy = true;
        warmUp(20);
        int calls = remote.calls;
        long leased = store.leased(POLICY);
        for (long i = 0; i <= leased; i++) {
            assertThat(take(1).allowed()).isTrue();
        }
        assertThat(remote.calls).isEqualTo(calls + 1);
        assertThat(store.leased(POLICY)).isPositive();
    }
}
