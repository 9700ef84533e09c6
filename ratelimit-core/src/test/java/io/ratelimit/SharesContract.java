package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The contract of the guaranteed shares of a store. */
public abstract class SharesContract extends SharesWaitContract {

    protected Decision take(ThrottlePolicy policy, @Nullable String tenant, long cost) {
        Charge charge = Charge.of(policy, "", cost);
        return store().take(List.of(tenant == null ? charge : charge.guaranteedTo(tenant)));
    }

    protected void drain(ThrottlePolicy policy, long reserve) {
        assertThat(take(policy, null, POOL.capacity() - reserve).allowed()).isTrue();
        assertThat(take(policy, null, 1).allowed()).isFalse();
    }

    @Test
    void whatIsGuaranteedIsNotAvailableToAll() {
        ThrottlePolicy policy = tenants(4);
        Charge charge = Charge.of(policy, "", 1);
        assertThat(store().snapshot(charge).available()).isEqualTo(8);
        assertThat(store().snapshot(charge).capacity()).isEqualTo(20);
        drain(policy, 12);
        assertThat(take(policy, "bob", 2).allowed()).isTrue();
        assertThat(store().snapshot(charge).available()).isZero();
        assertThat(store().snapshot(charge).nextTokenAfter()).isEqualTo(Duration.ofMillis(300));
        assertThat(store().snapshot(charge).resetAfter()).isEqualTo(Duration.ofSeconds(1));
    }

    @Test
    void allUseTheLimitButForTheReserve() {
        ThrottlePolicy policy = tenants(4);
        for (int i = 0; i < 8; i++) {
            Decision decision = take(policy, i % 2 == 0 ? "alice" : null, 1);
            assertThat(decision.allowed()).isTrue();
            assertThat(decision.answers().get(0).isGuaranteed()).isFalse();
            assertThat(decision.remaining()).isEqualTo(7 - i);
        }
        Decision denied = take(policy, null, 1);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.remaining()).isZero();
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(100));
    }

    @Test
    void aKeyHasItsShareWhenOthersHaveTakenTheRest() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        for (int i = 0; i < 3; i++) {
            Answer served = take(policy, "bob", 1).answers().get(0);
            assertThat(served.allowed()).isTrue();
            assertThat(served.isGuaranteed()).isTrue();
            assertThat(served.spec()).isEqualTo(LANE);
            assertThat(served.remaining()).isEqualTo(2 - i);
        }
        assertThat(take(policy, "bob", 1).allowed()).isFalse();
        assertThat(take(policy, "carol", 3).allowed()).isTrue();
        assertThat(take(policy, null, 1).allowed()).isFalse();
    }

    @Test
    void aDenialNamesTheSoonerOfBothMoments() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        Decision pool = take(policy, "bob", 1); // the pool is short of four tokens, the lane of one
        assertThat(pool.retryAfter()).isEqualTo(Duration.ofMillis(400));
        assertThat(pool.answers().get(0).isGuaranteed()).isFalse();
        assertThat(take(policy, "carol", 3).allowed()).isTrue();
        assertThat(take(policy, "dave", 3).allowed()).isTrue();
        assertThat(take(policy, "erin", 3).allowed()).isTrue();
        advance(Duration.ofMillis(500));
        Decision lane = take(policy, "bob", 1); // the pool is short of eight tokens, the lane of a half
        assertThat(lane.retryAfter()).isEqualTo(Duration.ofMillis(500));
        assertThat(lane.answers().get(0).isGuaranteed()).isTrue();
    }

    @Test
    void aCostBeyondWhatAllShareAndTheShareNeverFits() {
        ThrottlePolicy policy = tenants(6);
        assertThat(take(policy, null, 2).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(take(policy, "bob", 3).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(take(policy, "bob", 3).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(take(policy, "bob", 4).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(policy, null, 3).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(policy, null, Long.MAX_VALUE).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void aKeyWithoutAPlaceIsDeniedForATimeIfAllIsGuaranteed() {
        ThrottlePolicy policy = ThrottlePolicy.of("api", POOL.withCapacity(6))
                .withShares(Shares.forKeys(LANE, 2, List.of("header:tenant")));
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        assertThat(take(policy, "carol", 2).allowed()).isTrue();
        Decision denied = take(policy, "dave", 2);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofSeconds(2));
        assertThat(denied.answers().get(0).spec()).isEqualTo(LANE);
        assertThat(take(policy, "dave", 4).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(take(policy, null, 1).outcome()).isEqualTo(Outcome.NEVER_FITS);
        advance(Duration.ofSeconds(2));
        assertThat(take(policy, "dave", 2).allowed()).isTrue();
    }

    @Test
    void aShareWithTokensIsLateOnlyUntilTheDebtOfAllIsPaid() {
        ThrottlePolicy policy = tenants(4);
        Answer taken = take(policy, null, 8).answers().get(0);
        store().settle(taken, 20);
        Decision denied = take(policy, "bob", 2);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(200));
        advance(Duration.ofMillis(200));
        assertThat(take(policy, "bob", 2).allowed()).isTrue();
    }

    @Test
    void noMoreKeysHaveSharesThanThereAre() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        assertThat(take(policy, "carol", 2).allowed()).isTrue();
        assertThat(take(policy, "dave", 1).allowed()).isFalse();
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        assertThat(take(policy, "carol", 1).allowed()).isTrue();
    }

    @Test
    void keysThatTakeNothingTakeNoRoom() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        for (int i = 0; i < 10; i++) {
            assertThat(take(policy, "key" + i, 4).allowed()).isFalse();
        }
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        assertThat(take(policy, "carol", 3).allowed()).isTrue();
    }

    /** A client that chooses its key can hold all places, but no more than these, and only while it takes from all of them. */
    @Test
    void inventedKeysHoldOnlyThePlacesThatTheyUse() {
        ThrottlePolicy policy = tenants(4);
        long allowed = 0;
        for (int i = 0; i < 100; i++) {
            allowed += take(policy, "key" + i, 1).allowed() ? 1 : 0;
        }
        assertThat(allowed).isEqualTo(8 + 4);
        for (int i = 8; i < 12; i++) {
            assertThat(take(policy, "key" + i, 2).allowed()).isTrue();
        }
        for (int second = 0; second < 5; second++) { // a token of each share comes back, and is taken again
            advance(Duration.ofSeconds(1));
            drainAgain(policy);
            assertThat(take(policy, "bob", 1).allowed()).isFalse();
            for (int i = 8; i < 12; i++) {
                assertThat(take(policy, "key" + i, 1).allowed()).isTrue();
            }
        }
        advance(Duration.ofSeconds(3));
        drainAgain(policy);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
    }

    @Test
    void aFullShareMakesRoomForAnotherKey() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        assertThat(take(policy, "carol", 2).allowed()).isTrue();
        advance(Duration.ofSeconds(1));
        drainAgain(policy);
        assertThat(take(policy, "dave", 3).allowed()).isTrue();
        assertThat(take(policy, "erin", 1).allowed()).isFalse();
    }

    protected void drainAgain(ThrottlePolicy policy) {
        while (take(policy, null, 1).allowed()) {}
    }

    @Test
    void aLongKeyHasAShareOfItsOwn() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "x".repeat(5_000), 3).allowed()).isTrue();
        assertThat(take(policy, "x".repeat(5_000), 1).allowed()).isFalse();
        assertThat(take(policy, "x".repeat(5_000) + "y", 3).allowed()).isTrue();
    }

    @Test
    void aNameLeavesItsPartToOthers() {
        ThrottlePolicy policy =
                ThrottlePolicy.of("api", POOL).withShares(Shares.named(Map.of("checkout", LANE), Map.of("batch", 33)));
        long batch = 0;
        while (take(Charge.of(policy, "batch", "", 1)).allowed()) {
            batch++;
        }
        assertThat(batch).isEqualTo(13); // 33% of 20 tokens are 7 whole ones
        assertThat(take(Charge.of(policy, "other", "", 4)).allowed()).isTrue();
        assertThat(take(Charge.of(policy, "other", "", 1)).allowed()).isFalse();
        assertThat(take(Charge.of(policy, "checkout", "", 3)).allowed()).isTrue();
        assertThat(take(Charge.of(policy, "checkout", "", 1)).allowed()).isFalse();
    }

    private Decision take(Charge... charges) {
        return store().take(List.of(charges));
    }

    @Test
    void aCallOverSeveralLimitsTakesAllOrNothing() {
        ThrottlePolicy policy = tenants(4);
        ThrottlePolicy other = ThrottlePolicy.of("other", BucketSpec.of("1/m"));
        drain(policy, 12);
        Charge share = Charge.of(policy, "", 2).guaranteedTo("bob");
        assertThat(take(Charge.of(other, "", 1), share).allowed()).isTrue();
        Decision denied = take(share.withCost(1), Charge.of(other, "", 1));
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.answers().get(0).allowed()).isTrue();
        assertThat(denied.answers().get(0).isGuaranteed()).isTrue();
        assertThat(store().snapshot(share).available()).isEqualTo(1);
        assertThat(tokens(policy)).isEqualTo(10);
        Decision both = take(Charge.of(other, "", 1), share);
        assertThat(both.denials()).hasSize(2);
    }

    @Test
    void tokensComeBackToTheShareAndToAll() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Decision decision = take(policy, "bob", 3);
        store().giveBack(decision.taken());
        assertThat(tokens(policy)).isEqualTo(12);
        assertThat(take(policy, "bob", 3).answers().get(0).isGuaranteed()).isTrue();
    }

    @Test
    void aShareGetsBackNoMoreThanTheLimit() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Decision decision = take(policy, "bob", 3);
        advance(Duration.ofMillis(900)); // time pays for the eight tokens before, and for one of the three
        store().giveBack(decision.taken());
        Charge bob = Charge.of(policy, "", 1).guaranteedTo("bob");
        assertThat(tokens(policy)).isEqualTo(20);
        assertThat(store().snapshot(bob).available()).isEqualTo(2);
        assertThat(store().snapshot(bob).nextTokenAfter()).isEqualTo(Duration.ofMillis(100));
    }

    @Test
    void aLowerCostComesBackToTheShare() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Answer taken = take(policy, "bob", 3).answers().get(0);
        store().settle(taken, 1);
        assertThat(store().snapshot(taken.charge()).available()).isEqualTo(2);
        assertThat(tokens(policy)).isEqualTo(11);
    }

    @Test
    void aHigherCostIsOwedByAllAndEmptiesTheShare() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        Answer taken = take(policy, "bob", 1).answers().get(0);
        store().settle(taken, 5);
        assertThat(store().snapshot(taken.charge()).available()).isZero();
        assertThat(tokens(policy)).isEqualTo(7);
        advance(Duration.ofSeconds(1));
        assertThat(store().snapshot(taken.charge()).available()).isEqualTo(1);
    }

    @Test
    void aHigherCostEmptiesTheShareThatTheKeyHasNow() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        Answer taken = take(policy, "bob", 1).answers().get(0);
        advance(Duration.ofSeconds(1));
        drainAgain(policy);
        assertThat(take(policy, "carol", 1).allowed()).isTrue();
        assertThat(take(policy, "dave", 1).allowed()).isTrue(); // in the place of bob
        advance(Duration.ofSeconds(1));
        drainAgain(policy);
        assertThat(take(policy, "bob", 1).allowed()).isTrue();
        store().settle(taken, 6);
        assertThat(store().snapshot(taken.charge()).available()).isZero();
    }

    @Test
    void aHigherCostEmptiesTheShareOfAKeyWithoutAPlace() {
        ThrottlePolicy policy = tenants(1);
        drain(policy, 3);
        Answer taken = take(policy, "bob", 1).answers().get(0);
        advance(Duration.ofSeconds(1));
        drainAgain(policy);
        assertThat(take(policy, "carol", 1).allowed()).isTrue(); // in the place of bob
        advance(Duration.ofSeconds(1));
        store().settle(taken, 6);
        assertThat(store().snapshot(taken.charge()).available()).isZero();
    }

    @Test
    void tokensComeBackToTheShareThatTheKeyHasNow() {
        BucketSpec fast = POOL.withCapacity(3);
        ThrottlePolicy policy =
                ThrottlePolicy.of("api", POOL).withShares(Shares.forKeys(fast, 1, List.of("header:tenant")));
        drain(policy, 3);
        Decision first = take(policy, "bob", 1);
        advance(Duration.ofMillis(100));
        assertThat(take(policy, "carol", 3).allowed()).isTrue(); // in the place of bob
        advance(Duration.ofMillis(300));
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        store().giveBack(first.taken());
        assertThat(tokens(policy)).isEqualTo(1);
        assertThat(store().snapshot(first.taken().get(0).charge()).available()).isEqualTo(1);
    }

    @Test
    void aResetFillsAllShares() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        store().reset(Charge.of(policy, "", 1));
        drain(policy, 12);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
    }

    @Test
    void anotherRateKeepsTheShares() {
        ThrottlePolicy policy = tenants(4);
        drain(policy, 12);
        assertThat(take(policy, "bob", 2).allowed()).isTrue();
        ThrottlePolicy slower = policy.withSpec(POOL.with(Rate.of("4/s"), 15));
        assertThat(take(slower, "bob", 2).allowed()).isFalse();
        assertThat(take(slower, "bob", 1).allowed()).isTrue();
        assertThat(take(slower, "carol", 3).allowed()).isTrue();
        assertThat(take(slower, "dave", 3).allowed()).isTrue();
        assertThat(take(slower, "erin", 3).allowed()).isTrue();
    }

    @Test
    void otherSharesKeepTheDebtOfAKey() {
        ThrottlePolicy policy = tenants(2);
        drain(policy, 6);
        assertThat(take(policy, "bob", 3).allowed()).isTrue();
        ThrottlePolicy larger =
                policy.withShares(Shares.forKeys(BucketSpec.of("1/s").withCapacity(4), 3, List.of("header:tenant")));
        advance(Duration.ofSeconds(1));
        drainAgain(larger);
        assertThat(take(larger, "bob", 3).allowed()).isFalse();
        assertThat(take(larger, "bob", 1).allowed()).isTrue();
    }
}
