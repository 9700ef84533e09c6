package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Charge.Share;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The part of {@link SharesContract} for calls that wait for their guaranteed share. */
public abstract class SharesWaitContract extends SharesModelContract {

    static final BucketSpec POOL = BucketSpec.of("10/s").withCapacity(20);
    static final BucketSpec LANE = BucketSpec.of("1/s").withCapacity(3);
    private static final ThrottlePolicy POLICY = tenants(4).withMaxWait(Duration.ofSeconds(4));

    protected static ThrottlePolicy tenants(int keys) {
        return ThrottlePolicy.of("api", POOL).withShares(Shares.forKeys(LANE, keys, List.of("header:tenant")));
    }

    private static Charge charge(String tenant, long cost) {
        return Charge.of(POLICY, "", cost).guaranteedTo(tenant);
    }

    private Answer take(String tenant, long cost) {
        return store().take(List.of(charge(tenant, cost))).answers().get(0);
    }

    private Answer reserve(String tenant, long cost) {
        return store().reserve(List.of(charge(tenant, cost))).answers().get(0);
    }

    /** Takes what all share, and the share of bob. */
    private void drain() {
        assertThat(store().take(List.of(Charge.of(POLICY, "", 8))).allowed()).isTrue();
        assertThat(take("bob", 3).allowed()).isTrue();
    }

    private long tokens() {
        return tokens(POLICY);
    }

    /** Returns the tokens of the pool, with those of the reserve. */
    long tokens(ThrottlePolicy policy) {
        return store().snapshot(Charge.of(policy, "", 1).withShare(new Share("", null, 0, 1)))
                .available();
    }

    private long tokens(String tenant) {
        return store().snapshot(charge(tenant, 1)).available();
    }

    @Test
    void aCallWaitsForItsShareAndOthersHaveTheirsMeanwhile() {
        drain();
        Answer waiting = reserve("bob", 2);
        assertThat(waiting.allowed()).isTrue();
        assertThat(waiting.isGuaranteed()).isTrue();
        assertThat(waiting.waitNanos()).isEqualTo(Duration.ofSeconds(2).toNanos());
        assertThat(waiting.remaining()).isZero();
        assertThat(tokens("bob")).isZero();
        for (String other : List.of("carol", "dave", "erin")) {
            assertThat(take(other, 3).allowed()).as(other).isTrue();
        }
        assertThat(tokens()).isZero();
        advance(Duration.ofMillis(1_999));
        assertThat(tokens()).isEqualTo(19);
        advance(Duration.ofMillis(1));
        assertThat(tokens()).isEqualTo(18);
        assertThat(tokens("bob")).isZero();
        advance(Duration.ofSeconds(1));
        assertThat(tokens()).isEqualTo(20);
        assertThat(tokens("bob")).isEqualTo(1);
    }

    @Test
    void callsOfAShareWaitOneAfterTheOther() {
        drain();
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(1).toNanos());
        assertThat(reserve("bob", 2).waitNanos())
                .isEqualTo(Duration.ofSeconds(3).toNanos());
        assertThat(reserve("bob", 2).outcome()).isEqualTo(Outcome.TOO_LONG);
        advance(Duration.ofMillis(2_500));
        assertThat(reserve("bob", 1).isGuaranteed())
                .as("what all share has tokens")
                .isFalse();
        assertThat(tokens("bob")).isZero();
        advance(Duration.ofMillis(1_500));
        assertThat(tokens("bob")).isEqualTo(1);
    }

    @Test
    void aCallThatWouldWaitTooLongTakesNothing() {
        drain();
        assertThat(reserve("bob", 3).waitNanos())
                .isEqualTo(Duration.ofSeconds(3).toNanos());
        Answer denied = reserve("bob", 2);
        assertThat(denied.outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(denied.retryNanos())
                .isEqualTo(Duration.ofMillis(500).toNanos()); // what all share has two tokens then
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(4).toNanos());
    }

    @Test
    void onlyAShareIsWaitedFor() {
        drain();
        Charge common = Charge.of(POLICY, "", 1);
        assertThat(common.maxWait()).isZero();
        assertThat(store().reserve(List.of(common)).outcome()).isEqualTo(Outcome.DENIED);
        for (String other : List.of("carol", "dave", "erin")) {
            assertThat(take(other, 3).allowed()).isTrue();
        }
        assertThat(reserve("frank", 1).allowed()).as("the fifth of four keys").isFalse();
        assertThat(reserve("bob", 4).allowed()).as("more than a share").isFalse();
        assertThat(charge("bob", 1).withMaxWait(Duration.ofHours(1)).maxWait()).isEqualTo(Duration.ofSeconds(4));
    }

    @Test
    void aCallThatStopsWaitingCostsNothing() {
        drain();
        Answer first = reserve("bob", 1);
        Answer second = reserve("bob", 2);
        store().giveBack(List.of(second));
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(2).toNanos());
        store().giveBack(List.of(first)); // the call after it relies on the time of the share
        advance(Duration.ofSeconds(2));
        assertThat(tokens()).isEqualTo(19);
        assertThat(tokens("bob")).isZero();
    }

    @Test
    void tokensComeBackAfterTheWait() {
        drain();
        Answer waited = reserve("bob", 2);
        advance(Duration.ofSeconds(2));
        store().giveBack(List.of(waited));
        assertThat(tokens()).isEqualTo(20);
        assertThat(tokens("bob")).isEqualTo(2);
    }

    @Test
    void nothingComesBackToAShareWhoseCallsWait() {
        drain();
        Answer first = reserve("bob", 1);
        assertThat(reserve("bob", 2).waitNanos())
                .isEqualTo(Duration.ofSeconds(3).toNanos());
        advance(Duration.ofSeconds(1));
        store().giveBack(List.of(first));
        assertThat(tokens()).isEqualTo(19);
        assertThat(reserve("bob", 3).outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(tokens("bob")).isZero();
        advance(Duration.ofSeconds(2));
        assertThat(tokens("bob")).isZero();
    }

    @Test
    void theActualCostOfACallThatWaitedIsSettled() {
        drain();
        Answer waited = reserve("bob", 2);
        advance(Duration.ofSeconds(2));
        store().settle(waited, 4);
        assertThat(tokens()).isEqualTo(16);
        assertThat(tokens("bob")).isZero();
    }

    @Test
    void aCallThatWaitedIsPaidBeforeALaterSettlement() {
        drain();
        Answer settled = take("carol", 1);
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(1).toNanos());
        advance(Duration.ofSeconds(10));
        store().settle(settled, 5);
        assertThat(tokens()).isEqualTo(16);
    }

    @Test
    void aCallThatWaitedIsPaidWhenItWasDueHoweverLongAgo() {
        drain();
        assertThat(reserve("bob", 2).allowed()).isTrue();
        advance(Duration.ofMinutes(2));
        assertThat(tokens()).isEqualTo(20);
    }

    /** What all share would be full here without the call that waited. */
    @Test
    void aCallThatWaitedIsPaidAfterThoseBeforeIt() {
        BucketSpec lane = BucketSpec.of("1/2m").withCapacity(3);
        ThrottlePolicy policy = ThrottlePolicy.of("slow", BucketSpec.of("1/1m").withCapacity(10))
                .withShares(Shares.forKeys(lane, 2, List.of("user")))
                .withMaxWait(Duration.ofMinutes(20));
        Charge charge = Charge.of(policy, "", 3);
        assertThat(tokens(policy)).isEqualTo(10);
        assertThat(store().take(List.of(charge.withCost(1))).allowed()).isTrue();
        advance(Duration.ofSeconds(590));
        assertThat(store().take(List.of(charge.withCost(4))).allowed()).isTrue();
        for (String tenant : List.of("bob", "carol")) {
            assertThat(store().take(List.of(charge.guaranteedTo(tenant))).allowed())
                    .isTrue();
        }
        assertThat(store().reserve(List.of(charge.guaranteedTo("bob"))).waitNanos())
                .isEqualTo(Duration.ofMinutes(6).toNanos());
        advance(Duration.ofSeconds(620));
        assertThat(tokens(policy)).isEqualTo(7);
    }

    @Test
    void callsOfTwoSharesWaitTogether() {
        drain();
        assertThat(take("carol", 3).allowed()).isTrue();
        List<Charge> both = List.of(charge("bob", 2), charge("carol", 2));
        assertThat(store().reserve(both).waitNanos())
                .isEqualTo(Duration.ofSeconds(2).toNanos());
        advance(Duration.ofMillis(1_999));
        assertThat(tokens()).isEqualTo(20);
        advance(Duration.ofMillis(1));
        assertThat(tokens()).isEqualTo(16);
    }

    @Test
    void noCallWaitsWhileAllAreInDebt() {
        drain();
        Answer taken = take("carol", 1);
        store().settle(taken, 40);
        assertThat(reserve("bob", 1).outcome()).isEqualTo(Outcome.TOO_LONG);
    }

    @Test
    void aResetForgetsWhatIsToBePaid() {
        drain();
        assertThat(reserve("bob", 3).allowed()).isTrue();
        store().reset(Charge.of(POLICY, "", 1));
        advance(Duration.ofSeconds(3));
        assertThat(tokens()).isEqualTo(20);
        assertThat(tokens("bob")).isEqualTo(3);
    }

    @Test
    void aCallOverSeveralLimitsWaitsForAllOrTakesNothing() {
        ThrottlePolicy other = ThrottlePolicy.of("other", BucketSpec.of("1/m"));
        drain();
        Charge once = Charge.of(other, "", 1);
        assertThat(store().reserve(List.of(charge("bob", 1), once)).waitNanos())
                .isEqualTo(Duration.ofSeconds(1).toNanos());
        assertThat(store().reserve(List.of(charge("bob", 1), once)).allowed()).isFalse();
        assertThat(reserve("bob", 1).waitNanos())
                .isEqualTo(Duration.ofSeconds(2).toNanos());
        advance(Duration.ofSeconds(2));
        assertThat(tokens()).isEqualTo(19);
    }
}
