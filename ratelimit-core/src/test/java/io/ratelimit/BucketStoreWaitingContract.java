package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.LongStream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** The part of {@link BucketStoreContract} for charges that may wait: taking tokens ahead. */
public abstract class BucketStoreWaitingContract extends BucketStoreSettlementContract {

    private static final BucketSpec SPEC = BucketSpec.of("1/s").withCapacity(5);
    private static final ThrottlePolicy USER = ThrottlePolicy.of("waiting-user", SPEC, "user");
    private static final ThrottlePolicy GLOBAL =
            ThrottlePolicy.of("waiting-global", BucketSpec.of("1/2s").withCapacity(8));

    private static Charge alice(long cost) {
        return under(SPEC, cost);
    }

    private static Charge under(BucketSpec spec, long cost) {
        return new Charge(USER, spec, "alice", cost, Duration.ofMinutes(10));
    }

    private static Charge global(long cost) {
        return Charge.of(GLOBAL, "", cost).withMaxWait(Duration.ofMinutes(10));
    }

    private Decision reserve(Charge... charges) {
        return store().reserve(List.of(charges));
    }

    private void drain(Charge... charges) {
        assertThat(store().take(List.of(charges)).allowed()).isTrue();
    }

    private Duration untilFull(Charge charge) {
        return store().snapshot(charge).resetAfter();
    }

    private static Duration seconds(long seconds) {
        return Duration.ofSeconds(seconds);
    }

    @Test
    void aCallThatMayWaitTakesAvailableTokensAtOnce() {
        Decision decision = reserve(alice(3));
        assertThat(decision.allowed()).isTrue();
        assertThat(decision.waitFor()).isZero();
        assertThat(decision.remaining()).isEqualTo(2);
        assertThat(reserve().waitFor()).isZero();
    }

    @Test
    void tokensThatComeSoonEnoughAreTakenAhead() {
        drain(alice(4));
        Decision decision = reserve(alice(3));
        assertThat(decision.outcome()).isEqualTo(Outcome.ALLOWED);
        assertThat(decision.waitFor()).isEqualTo(seconds(2));
        assertThat(decision.retryAfter()).isZero();
        assertThat(decision.remaining()).isZero();
        assertThat(decision.nextTokenAfter()).isEqualTo(seconds(3));
        assertThat(decision.resetAfter()).isEqualTo(seconds(7));
    }

    @Test
    void aBucketInDebtShowsNoTokensAndTheDebtInItsTimeToFull() {
        drain(alice(5));
        reserve(alice(2));
        assertThat(store().snapshot(alice(1)))
                .isEqualTo(new BucketSnapshot(5, Rate.of("1/s"), 0, seconds(3), seconds(7)));
        advance(Duration.ofMillis(2_500));
        assertThat(store().snapshot(alice(1)))
                .isEqualTo(new BucketSnapshot(5, Rate.of("1/s"), 0, Duration.ofMillis(500), Duration.ofMillis(4_500)));
        advance(Duration.ofMillis(500));
        assertThat(store().snapshot(alice(1)))
                .isEqualTo(new BucketSnapshot(5, Rate.of("1/s"), 1, seconds(1), seconds(4)));
    }

    @Test
    void aCallThatDoesNotWaitIsDeniedWhileTheBucketIsInDebt() {
        drain(alice(5));
        reserve(alice(2));
        Decision denied = store().take(List.of(alice(1)));
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryAfter()).isEqualTo(seconds(3));
        assertThat(denied.remaining()).isZero();
        advance(Duration.ofMillis(2_999));
        assertThat(store().take(List.of(alice(1))).allowed()).isFalse();
        advance(Duration.ofMillis(1));
        assertThat(store().take(List.of(alice(1))).allowed()).isTrue();
    }

    @Test
    void firstComeFirstServedWhateverTheCost() {
        drain(alice(5));
        long due = 0;
        for (long cost : new long[] {3, 1, 5, 1, 2, 4}) {
            due += cost;
            assertThat(reserve(alice(cost)).waitFor()).isEqualTo(seconds(due));
        }
        advance(seconds(7));
        assertThat(reserve(alice(1)).waitFor()).isEqualTo(seconds(due - 7 + 1));
    }

    @Test
    void aCallThatWouldWaitTooLongTakesNothingAndGetsTheRetryTime() {
        drain(alice(5));
        Decision decision = reserve(alice(3).withMaxWait(Duration.ofMillis(2_999)));
        assertThat(decision.outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(decision.waitFor()).isZero();
        assertThat(decision.retryAfter()).isEqualTo(seconds(3));
        assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
        assertThat(reserve(alice(3).withMaxWait(seconds(3))).waitFor()).isEqualTo(seconds(3));
    }

    @Test
    void emptyTooLongAndNeverAreThreeAnswers() {
        drain(alice(5));
        assertThat(reserve(alice(1).withMaxWait(Duration.ZERO)).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(reserve(alice(1).withMaxWait(Duration.ofNanos(1))).outcome()).isEqualTo(Outcome.TOO_LONG);
        Decision never = reserve(alice(6).withMaxWait(ThrottlePolicy.LONGEST_WAIT));
        assertThat(never.outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(never.retryAfter()).isZero();
        assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
    }

    @Test
    void takingAtOnceNeverWaitsWhateverTheChargeAllows() {
        drain(alice(5));
        assertThat(store().take(List.of(alice(1))).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
    }

    @Test
    void overSeveralBucketsTheLongestWaitCountsAndAllAreTakenFrom() {
        drain(alice(5), global(7));
        Decision decision = reserve(alice(1), global(3));
        assertThat(decision.waitFor()).isEqualTo(seconds(4));
        assertThat(decision.answers())
                .extracting(answer -> answer.waitNanos())
                .containsExactly(seconds(1).toNanos(), seconds(4).toNanos());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(6));
        assertThat(untilFull(global(1))).isEqualTo(seconds(20));
        assertThat(reserve(global(1), alice(2)).waitFor()).isEqualTo(seconds(6));
    }

    @Test
    void ifOneChargeMayNotWaitSoLongNoBucketIsTakenAhead() {
        drain(alice(5), global(8));
        for (List<Charge> charges : List.of(
                List.of(alice(1), global(1).withMaxWait(Duration.ofMillis(1_999))),
                List.of(global(1).withMaxWait(Duration.ofMillis(1_999)), alice(1)))) {
            Decision decision = store().reserve(charges);
            assertThat(decision.outcome()).isEqualTo(Outcome.TOO_LONG);
            assertThat(decision.waitFor()).isZero();
            assertThat(decision.retryAfter()).isEqualTo(seconds(2));
            assertThat(decision.answers()).extracting(Answer::charge).isEqualTo(charges);
            assertThat(decision.denials()).extracting(Answer::policy).containsExactly(GLOBAL);
            assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
            assertThat(untilFull(global(1))).isEqualTo(seconds(16));
        }
        assertThat(reserve(alice(1), global(1).withMaxWait(Duration.ZERO)).outcome())
                .isEqualTo(Outcome.DENIED);
        assertThat(reserve(alice(6), global(1)).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(untilFull(global(1))).isEqualTo(seconds(16));
        assertThat(reserve(alice(1), global(1).withMaxWait(seconds(2))).waitFor())
                .isEqualTo(seconds(2));
    }

    @Test
    void oneBucketChargedTwiceWaitsForBoth() {
        drain(alice(5));
        assertThat(reserve(alice(1), alice(2)).waitFor()).isEqualTo(seconds(3));
        assertThat(untilFull(alice(1))).isEqualTo(seconds(8));
        assertThat(reserve(alice(1), alice(2).withMaxWait(seconds(5))).outcome())
                .isEqualTo(Outcome.TOO_LONG);
        assertThat(untilFull(alice(1))).isEqualTo(seconds(8));
    }

    @Test
    void oneBucketChargedTwiceGetsAllBackFromTheLastWaitingCall() {
        drain(alice(5));
        store().giveBack(reserve(alice(1), alice(2), alice(1)).answers());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
    }

    /** The first retry time shows where the store's period begins. */
    @Test
    void intervalRefillServesABatchAtEachTick() {
        BucketSpec interval = new BucketSpec(Rate.of("5/1m"), 8, Refill.INTERVAL);
        drain(under(interval, 8));
        Duration tick = store().take(List.of(under(interval, 1))).retryAfter();
        assertThat(reserve(under(interval, 4)).waitFor()).isEqualTo(tick);
        assertThat(reserve(under(interval, 1)).waitFor()).isEqualTo(tick);
        assertThat(reserve(under(interval, 1)).waitFor()).isEqualTo(tick.plusMinutes(1));
        assertThat(reserve(under(interval, 8)).waitFor()).isEqualTo(tick.plusMinutes(2));
    }

    /** The batch after the next one leaves 99 tokens over. None of them is there before it. */
    @Test
    void aBatchThatPaysADebtGrantsNothingBeforeItUnderAnotherLimit() {
        BucketSpec batches = new BucketSpec(Rate.of("100/1m"), 100, Refill.INTERVAL);
        drain(under(batches, 1));
        advance(untilFull(under(batches, 1)).minusMillis(5));
        drain(under(batches, 99));
        assertThat(reserve(under(batches, 100)).waitFor()).isEqualTo(Duration.ofMillis(5));
        assertThat(reserve(under(batches, 1)).waitFor()).isEqualTo(Duration.ofMillis(60_005));
        for (Refill refill : List.of(Refill.INTERVAL, Refill.GREEDY)) {
            Charge other = under(new BucketSpec(Rate.of("100/1h"), 100, refill), 1);
            assertThat(store().take(List.of(other)).retryAfter()).isGreaterThan(Duration.ofMinutes(1));
        }
    }

    @Test
    void theLastWaitingCallGivesBackAllThatItTook() {
        drain(alice(5));
        reserve(alice(5));
        Decision last = reserve(alice(3));
        store().giveBack(last.answers());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(10));
        assertThat(reserve(alice(2)).waitFor()).isEqualTo(seconds(7));
    }

    /** Later calls have promised moments that depend on these tokens staying taken. */
    @Test
    void aWaitingCallGivesBackOnlyWhatExceedsTheLaterTakes() {
        drain(alice(5));
        Decision first = reserve(alice(5));
        Decision second = reserve(alice(1));
        reserve(alice(2));
        store().giveBack(second.answers());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(13));
        store().giveBack(first.answers());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(11));
    }

    @Test
    void aServedCallGivesBackOnlyWhatExceedsTheLaterTakes() {
        Decision served = reserve(alice(5));
        advance(seconds(1));
        reserve(alice(3));
        store().giveBack(served.answers());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
        advance(seconds(2));
        store().giveBack(Specs.taken(alice(2)));
        assertThat(untilFull(alice(1))).isEqualTo(seconds(1));
    }

    @Test
    void withoutAReceiptNoTokenComesBackWhileCallsWait() {
        drain(alice(5));
        reserve(alice(2));
        store().giveBack(Specs.taken(alice(5)));
        assertThat(untilFull(alice(1))).isEqualTo(seconds(7));
        advance(seconds(2));
        store().giveBack(Specs.taken(alice(4)));
        assertThat(untilFull(alice(1))).isEqualTo(seconds(1));
    }

    @Test
    void tokensTakenAheadFromSeveralBucketsGoBackByEachBucketsBacklog() {
        drain(alice(5), global(8));
        Decision both = reserve(alice(2), global(2));
        reserve(global(1));
        store().giveBack(both.answers());
        assertThat(untilFull(alice(1))).isEqualTo(seconds(5));
        assertThat(untilFull(global(1))).isEqualTo(seconds(20));
    }

    /** The old rate counts until the last waiting call is served; then the bucket is empty and the new rate counts. */
    @Test
    void aWaitingCallKeepsItsMomentWhenTheRateChangesAndIsNeverOvertaken() {
        for (String rate : List.of("10/s", "1/10s")) {
            drain(alice(5));
            reserve(alice(2));
            BucketSpec changed = BucketSpec.of(rate).withCapacity(5);
            Duration token = changed.timeToFull().dividedBy(5);
            assertThat(store().snapshot(under(changed, 1)))
                    .isEqualTo(new BucketSnapshot(
                            5,
                            changed.rate(),
                            0,
                            seconds(2).plus(token),
                            seconds(2).plus(changed.timeToFull())));
            assertThat(store().take(List.of(under(changed, 1))).retryAfter())
                    .isEqualTo(seconds(2).plus(token));
            assertThat(reserve(under(changed, 1)).waitFor())
                    .isEqualTo(seconds(2).plus(token));
            assertThat(reserve(under(changed, 2)).waitFor())
                    .isEqualTo(seconds(2).plus(token.multipliedBy(3)));
            store().reset(alice(1));
        }
    }

    @Test
    void aWaitingCallKeepsItsMomentWhenTheCapacityChanges() {
        for (long capacity : new long[] {2, 5, 50}) {
            drain(alice(5));
            reserve(alice(4));
            BucketSpec changed = SPEC.withCapacity(capacity);
            assertThat(reserve(under(changed, 1)).waitFor()).isEqualTo(seconds(5));
            assertThat(untilFull(under(changed, 1))).isEqualTo(seconds(5 + capacity));
            store().reset(alice(1));
        }
    }

    @Test
    void aRateThatRisesAndFallsAgainCostsNoToken() {
        BucketSpec slow = BucketSpec.of("5/1d");
        BucketSpec fast = BucketSpec.of("5/1m");
        drain(under(slow, 5));
        assertThat(reserve(under(slow, 1).withMaxWait(Duration.ofDays(1))).waitFor())
                .isEqualTo(Duration.ofMinutes(288));
        assertThat(store().take(List.of(under(fast, 1))).retryAfter())
                .isEqualTo(Duration.ofMinutes(288).plusSeconds(12));
        assertThat(store().take(List.of(under(slow, 1))).retryAfter()).isEqualTo(Duration.ofMinutes(2 * 288));
    }

    @Test
    void threadsThatTakeAheadHaveAMomentEach() {
        drain(alice(5));
        int threads = 8;
        int each = 50;
        Queue<Long> waits = new ConcurrentLinkedQueue<>();
        Threads.run(threads, thread -> {
            long last = 0;
            for (int i = 0; i < each; i++) {
                long wait = reserve(alice(1)).waitFor().toSeconds();
                assertThat(wait).isGreaterThan(last);
                waits.add(wait);
                last = wait;
            }
        });
        assertThat(waits)
                .containsExactlyInAnyOrderElementsOf(
                        LongStream.rangeClosed(1, threads * each).boxed().toList());
    }

    /** G1: the tokens due in any interval are at most the capacity plus the refill of that interval. */
    @RepeatedTest(20)
    void cancellingNeverServesAnIntervalMoreThanCapacityAndRate(RepetitionInfo run) {
        record Grant(Decision decision, long due, long cost) {}
        var random = new SplittableRandom(run.getCurrentRepetition());
        List<Grant> grants = new ArrayList<>();
        long now = 0;
        for (int i = 0; i < 80; i++) {
            long step = random.nextInt(3) == 0 ? 100L * random.nextInt(25) : 0;
            advance(Duration.ofMillis(step));
            now += step;
            long present = now;
            List<Grant> waiting =
                    grants.stream().filter(grant -> grant.due > present).toList();
            if (!waiting.isEmpty() && random.nextInt(3) == 0) {
                Grant leaving = waiting.get(random.nextInt(waiting.size()));
                store().giveBack(leaving.decision.answers());
                grants.remove(leaving);
                continue;
            }
            long cost = 1 + random.nextInt(5);
            Decision decision = random.nextInt(4) == 0 ? store().take(List.of(alice(cost))) : reserve(alice(cost));
            if (decision.allowed()) {
                grants.add(new Grant(decision, now + decision.waitFor().toMillis(), cost));
            }
        }
        for (Grant first : grants) {
            for (Grant last : grants) {
                long granted = grants.stream()
                        .filter(grant -> grant.due >= first.due && grant.due <= last.due)
                        .mapToLong(Grant::cost)
                        .sum();
                assertThat(granted * 1_000)
                        .as("seed %d, from %d to %d ms", run.getCurrentRepetition(), first.due, last.due)
                        .isLessThanOrEqualTo(5_000 + Math.max(last.due - first.due, 0));
            }
        }
    }
}
