package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** The part of {@link BucketStoreContract} for settlements: the actual cost replaces the estimate. */
public abstract class BucketStoreSettlementContract extends BucketStoreVectorsContract {

    private static final BucketSpec TOKENS = BucketSpec.of("1/s").withCapacity(10);
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("settled", TOKENS, "user");

    private static Charge cost(long cost) {
        return under(TOKENS, cost);
    }

    private static Charge under(BucketSpec spec, long cost) {
        return new Charge(POLICY, spec, "alice", cost, Duration.ofMinutes(10));
    }

    private Answer taken(long estimate) {
        Decision decision = store().take(List.of(cost(estimate)));
        assertThat(decision.allowed()).isTrue();
        return decision.answers().get(0);
    }

    private Answer reserved(long cost, long seconds) {
        Decision decision = store().reserve(List.of(cost(cost)));
        assertThat(decision.waitFor()).isEqualTo(Duration.ofSeconds(seconds));
        return decision.answers().get(0);
    }

    private BucketSnapshot bucket() {
        return store().snapshot(cost(1));
    }

    private void hasDebt(long seconds) {
        assertThat(bucket().available()).isZero();
        assertThat(bucket().resetAfter()).isEqualTo(Duration.ofSeconds(10 + seconds));
    }

    private void settle(Answer taken, long cost) {
        assertThat(store().settle(taken, cost)).isTrue();
    }

    @Test
    void theRestOfTheEstimateComesBack() {
        Answer taken = taken(8);
        settle(taken, 3);
        assertThat(bucket().available()).isEqualTo(7);
    }

    @Test
    void aCallThatCostNothingGivesAllBack() {
        settle(taken(8), 0);
        assertThat(bucket()).isEqualTo(new BucketSnapshot(10, Rate.of("1/s"), 10, Duration.ZERO, Duration.ZERO));
    }

    @Test
    void aSettlementAtTheEstimateChangesNothing() {
        settle(taken(8), 8);
        assertThat(bucket().available()).isEqualTo(2);
    }

    @Test
    void aHigherCostTakesTheDifference() {
        settle(taken(4), 6);
        assertThat(bucket().available()).isEqualTo(4);
    }

    @Test
    void aBucketInDebtAllowsNothingUntilTheDebtIsPaid() {
        settle(taken(4), 15);
        hasDebt(5);
        Decision denied = store().take(List.of(cost(1)));
        assertThat(denied.allowed()).isFalse();
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofSeconds(6));
        advance(Duration.ofMillis(5_999));
        assertThat(store().take(List.of(cost(1))).allowed()).isFalse();
        advance(Duration.ofMillis(1));
        assertThat(store().take(List.of(cost(1))).allowed()).isTrue();
    }

    @Test
    void aDebtOutlivesTheTimeFromEmptyToFull() {
        settle(taken(1), 1_000_000);
        advance(Duration.ofDays(11));
        assertThat(store().take(List.of(cost(1))).allowed()).isFalse();
        advance(Duration.ofDays(1));
        assertThat(bucket().available()).isEqualTo(10);
    }

    @Test
    void debtsOfSeveralCallsAddUp() {
        Answer first = taken(4);
        Answer second = taken(4);
        settle(second, 10);
        settle(first, 12);
        hasDebt(12);
    }

    @Test
    void aDebtDoesNotKeepTheRestOfOtherCalls() {
        Answer first = taken(5);
        Answer second = taken(5);
        settle(second, 15);
        settle(first, 2);
        hasDebt(7);
    }

    @Test
    void aGiveBackComesThroughADebt() {
        Answer first = taken(5);
        settle(taken(5), 15);
        store().giveBack(List.of(first));
        hasDebt(5);
    }

    @Test
    void timePaysForTheActualCostFirst() {
        Answer taken = taken(8);
        advance(Duration.ofSeconds(5));
        settle(taken, 2);
        assertThat(bucket().available()).isEqualTo(10);
    }

    @Test
    void tokensThatTimeHasBroughtDoNotComeBackAsWell() {
        Answer taken = taken(10);
        advance(Duration.ofSeconds(10));
        taken(10);
        settle(taken, 1);
        assertThat(bucket().available()).isZero();
    }

    @Test
    void aBucketThatIsFullAgainOrForgottenOwesTheDifference() {
        Answer taken = taken(4);
        Answer other = taken(4);
        advance(Duration.ofSeconds(30));
        settle(taken, 9);
        assertThat(bucket().available()).isEqualTo(5);
        store().reset(cost(1));
        settle(other, 5);
        assertThat(bucket().available()).isEqualTo(9);
    }

    @Test
    void aBucketThatIsFullAgainOrForgottenStaysFull() {
        Answer taken = taken(4);
        Answer other = taken(4);
        advance(Duration.ofSeconds(30));
        settle(taken, 1);
        assertThat(bucket().resetAfter()).isZero();
        store().reset(cost(1));
        settle(other, 0);
        assertThat(bucket().resetAfter()).isZero();
    }

    @Test
    void waitingCallsKeepTheirTurnWhenTokensAreOwed() {
        Answer first = taken(10);
        Answer second = reserved(3, 3);
        settle(first, 14);
        reserved(1, 8);
        store().giveBack(List.of(second));
        advance(Duration.ofSeconds(8));
        assertThat(bucket().available()).isZero();
    }

    /** The waiting call needs the third second. What the settlement owed is behind it, so all of it may come back. */
    @Test
    void aDebtIsNoPromise() {
        Answer first = taken(5);
        Answer second = taken(5);
        Answer waiting = reserved(3, 3);
        settle(first, 25);
        hasDebt(23);
        settle(second, 2);
        hasDebt(23 - 2);
        advance(Duration.ofSeconds(3));
        settle(waiting, 0);
        hasDebt(18 - 3);
    }

    @Test
    void aDebtIsKeptWhenTheLimitChanges() {
        settle(taken(10), 15);
        BucketSpec faster = BucketSpec.of("10/s").withCapacity(20);
        BucketSnapshot bucket = store().snapshot(under(faster, 1));
        assertThat(bucket.available()).isZero();
        assertThat(bucket.resetAfter()).isEqualTo(Duration.ofMillis(2_500));
        Decision denied = store().take(List.of(under(faster, 1)));
        assertThat(denied.retryAfter()).isEqualTo(Duration.ofMillis(600));
        advance(Duration.ofMillis(600));
        assertThat(store().take(List.of(under(faster, 1))).allowed()).isTrue();
    }

    @Test
    void aCallIsSettledInTokensOfTheLimitThatHoldsNow() {
        Answer taken = taken(4);
        BucketSpec faster = BucketSpec.of("10/s").withCapacity(20);
        assertThat(store().take(List.of(under(faster, 1))).remaining()).isEqualTo(5);
        settle(taken, 19);
        assertThat(store().snapshot(under(faster, 1)).resetAfter()).isEqualTo(Duration.ofSeconds(3));
    }

    /** A customer is upgraded. The bucket would have been full under the old limit a day later. */
    @Test
    void tokensTakenAfterAChangeOfTheLimitComeBack() {
        BucketSpec before = BucketSpec.of("5/1d");
        BucketSpec after = BucketSpec.of("100/1m");
        assertThat(store().take(List.of(under(before, 5))).allowed()).isTrue();
        assertThat(store().take(List.of(under(after, 1))).allowed()).isFalse();
        advance(Duration.ofMinutes(1));
        for (int i = 0; i < 160; i++) {
            Decision free = store().take(List.of(under(after, 1)));
            assertThat(free.allowed()).as("request %d", i).isTrue();
            store().giveBack(free.answers());
        }
        Decision estimate = store().take(List.of(under(after, 50)));
        settle(estimate.answers().get(0), 1);
        assertThat(store().snapshot(under(after, 1)).available()).isEqualTo(99);
    }

    /** The other limit has brought them meanwhile. */
    @Test
    void tokensOfALimitThatHoldsOnceMoreDoNotComeBack() {
        BucketSpec slow = BucketSpec.of("5/1d");
        BucketSpec fast = BucketSpec.of("5/1s");
        Decision early = store().take(List.of(under(slow, 5)));
        assertThat(store().take(List.of(under(fast, 1))).allowed()).isFalse();
        advance(Duration.ofSeconds(1));
        assertThat(store().take(List.of(under(fast, 1))).allowed()).isTrue();
        assertThat(store().take(List.of(under(slow, 4))).allowed()).isTrue();
        store().giveBack(early.answers());
        assertThat(store().snapshot(under(slow, 1)).available()).isZero();
    }

    @Test
    void anyNumberOfRefundsComesBackWhileOtherRequestsAreUnderWay() {
        BucketSpec yearly = BucketSpec.of("5/365d");
        List<Answer> underWay = new ArrayList<>();
        for (int i = 0; i < 700; i++) {
            underWay.addAll(store().take(List.of(under(yearly, 1))).answers());
            if (i > 1) {
                store().giveBack(List.of(underWay.remove(0)));
            }
        }
        store().giveBack(underWay);
        assertThat(store().snapshot(under(yearly, 1)).available()).isEqualTo(5);
    }

    /** Time has paid for the last token, since the others were given back, but its take counts four before it. */
    @Test
    void tokensOfABucketThatWasFullMeanwhileDoNotComeBack() {
        List<Answer> first = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            first.add(taken(1));
        }
        Answer late = taken(1);
        store().giveBack(first);
        advance(Duration.ofSeconds(1));
        assertThat(bucket().available()).isEqualTo(10);
        taken(10);
        store().giveBack(List.of(late));
        assertThat(bucket().available()).isZero();
    }

    /** 10^12 tokens at one a second would take 31,700 years. */
    @Test
    void aDebtEndsAfter365Days() {
        settle(taken(1), Throttlers.MAX_SETTLED_COST);
        assertThat(bucket().resetAfter()).isEqualTo(Duration.ofDays(365).plusSeconds(10));
        settle(reservedAfter(Duration.ofDays(365)), Throttlers.MAX_SETTLED_COST);
        assertThat(bucket().resetAfter()).isEqualTo(Duration.ofDays(365).plusSeconds(10));
    }

    private Answer reservedAfter(Duration time) {
        advance(time.plusSeconds(1));
        return taken(1);
    }

    /** Without waiting calls and without time, the order of takes and settlements is no matter. */
    @RepeatedTest(50)
    void settledCallsLeaveTheBucketAsCallsOfTheActualCostsWould(RepetitionInfo run) {
        Random random = new Random(run.getCurrentRepetition());
        List<Answer> open = new ArrayList<>();
        for (int left = 10; left > 0; ) {
            int estimate = 1 + random.nextInt(left);
            open.add(taken(estimate));
            left -= estimate;
        }
        Collections.shuffle(open, random);
        long spent = 0;
        for (Answer answer : open) {
            long cost = random.nextInt(3) == 0 ? random.nextInt(30) : random.nextInt(5);
            settle(answer, cost);
            spent += cost;
        }
        assertThat(bucket().resetAfter())
                .as("seed %d", run.getCurrentRepetition())
                .isEqualTo(Duration.ofSeconds(spent));
    }
}
