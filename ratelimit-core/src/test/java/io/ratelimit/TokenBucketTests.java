package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Outcome;
import java.math.BigInteger;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TokenBucketTests {

    private final ManualTimeSource time = new ManualTimeSource();

    /** One line of a timeline: the time, the tokens before, the cost and the answer. */
    private record Ask(long atMillis, long before, long cost, Outcome outcome, long remaining, long retryMillis) {}

    private static Ask allowed(long atMillis, long before, long cost) {
        return new Ask(atMillis, before, cost, Outcome.ALLOWED, before - cost, 0);
    }

    private static Ask denied(long atMillis, long before, long cost, long retryMillis) {
        return new Ask(atMillis, before, cost, Outcome.DENIED, before, retryMillis);
    }

    private static Ask neverFits(long atMillis, long before, long cost) {
        return new Ask(atMillis, before, cost, Outcome.NEVER_FITS, before, 0);
    }

    private void runTimeline(BucketSpec spec, Ask... asks) {
        TokenBucket bucket = TokenBucket.of(spec, time);
        for (Ask ask : asks) {
            time.advance(Duration.ofMillis(ask.atMillis).minusNanos(time.nanoTime()));
            assertThat(bucket.snapshot().available()).as("before %s", ask).isEqualTo(ask.before);
            Decision decision = bucket.decide(ask.cost);
            assertThat(decision.outcome()).as("%s", ask).isEqualTo(ask.outcome);
            assertThat(decision.remaining()).as("%s", ask).isEqualTo(ask.remaining);
            assertThat(decision.retryAfter()).as("%s", ask).isEqualTo(Duration.ofMillis(ask.retryMillis));
            assertThat(decision.answers()).isEmpty();
        }
    }

    /** S1.1, S1.2, S1.5. */
    @Test
    void startsFullAndRefillsTokenByTokenUpToTheCapacity() {
        runTimeline(
                BucketSpec.of("10/s").withCapacity(3),
                allowed(0, 3, 1),
                allowed(0, 2, 2),
                denied(0, 0, 1, 100),
                denied(99, 0, 1, 1),
                allowed(100, 1, 1),
                denied(150, 0, 1, 50),
                denied(250, 1, 2, 50),
                allowed(300, 2, 2),
                allowed(1_300, 3, 1),
                allowed(1_399, 2, 2),
                allowed(1_400, 1, 1));
    }

    /** S1.5: a denied call takes no part of its cost. */
    @Test
    void takesAllOfTheTokensOrNone() {
        runTimeline(
                BucketSpec.of("1/s").withCapacity(10),
                allowed(0, 10, 7),
                denied(0, 3, 4, 1_000),
                denied(0, 3, 10, 7_000),
                allowed(0, 3, 3));
    }

    /** S1.6: a cost above the capacity has its own outcome and no retry time. */
    @Test
    void distinguishesACostThatNeverFitsFromAShortBucket() {
        runTimeline(
                BucketSpec.of("1/s").withCapacity(5),
                neverFits(0, 5, 6),
                neverFits(0, 5, Long.MAX_VALUE),
                allowed(0, 5, 5),
                neverFits(0, 0, 6),
                denied(0, 0, 5, 5_000));
    }

    /** S1.3: whole batches at fixed times. */
    @Test
    void intervalRefillBringsAPeriodsTokensAtEachTick() {
        runTimeline(
                new BucketSpec(Rate.of("5/1s"), 8, Refill.INTERVAL),
                allowed(300, 8, 8),
                denied(999, 0, 1, 1),
                allowed(1_000, 5, 1),
                denied(1_000, 4, 5, 1_000),
                denied(1_999, 4, 5, 1),
                allowed(2_000, 8, 8),
                denied(2_000, 0, 6, 2_000),
                denied(3_500, 5, 6, 500),
                allowed(9_999, 8, 8),
                allowed(10_000, 5, 5));
    }

    @Test
    void intervalTicksAreWholePeriodsOfTheTimeSource() {
        time.advance(Duration.ofMillis(1_700));
        runTimeline(
                BucketSpec.of("5/1s").withRefill(Refill.INTERVAL),
                allowed(1_700, 5, 5),
                denied(1_999, 0, 1, 1),
                allowed(2_000, 5, 5));
    }

    /** S4.2: slower than one a second. */
    @Test
    void oneTokenEverySoManySeconds() {
        runTimeline(
                BucketSpec.of("1/5s").withCapacity(2),
                allowed(0, 2, 2),
                denied(4_999, 0, 1, 1),
                allowed(5_000, 1, 1),
                denied(9_000, 0, 2, 6_000));
    }

    /** S1.2: frequent calls lose no fractions, as they do if each call rounds down and moves the clock. */
    @ParameterizedTest
    @ValueSource(strings = {"10/1s", "7/1s", "30000001/1d", "65537/1s", "1/1h"})
    void frequentCallsLoseNoFraction(String rate) {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of(rate).withCapacity(50_000), time);
        TokenBucket seldom = TokenBucket.of(BucketSpec.of(rate).withCapacity(50_000), time);
        assertThat(bucket.tryAcquire(50_000) && seldom.tryAcquire(50_000)).isTrue();
        long granted = 0;
        for (int i = 0; i < 10_007; i++) {
            time.advance(Duration.ofNanos(13_577));
            granted += bucket.tryAcquire(1) ? 1 : 0;
        }
        assertThat(granted + bucket.snapshot().available())
                .isEqualTo(seldom.snapshot().available());
    }

    /** Spring Cloud Gateway #591: denied calls moved the clock there, and starved a caller that retried often. */
    @ParameterizedTest
    @CsvSource({"1/1s, GREEDY", "7/1m, GREEDY", "30000001/1d, GREEDY", "5/10s, INTERVAL"})
    void deniedCallsDelayNothing(String rate, Refill refill) {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of(rate).withRefill(refill), time);
        assertThat(bucket.tryAcquire(bucket.snapshot().capacity())).isTrue();
        long due = time.nanoTime() + bucket.decide(1).retryNanos();
        while (time.nanoTime() < due) {
            assertThat(bucket.tryAcquire(1)).as("at %d ns", time.nanoTime()).isFalse();
            assertThat(time.nanoTime() + bucket.decide(1).retryNanos()).isEqualTo(due);
            time.advance(Duration.ofNanos(Math.min(7_654_321, due - time.nanoTime())));
        }
        assertThat(bucket.tryAcquire(1)).isTrue();
    }

    @Test
    void givingBackCanNotOverfill() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/s").withCapacity(5), time);
        bucket.giveBack(3);
        assertThat(bucket.snapshot().available()).isEqualTo(5);
        assertThat(bucket.tryAcquire(4)).isTrue();
        bucket.giveBack(2);
        assertThat(bucket.snapshot().available()).isEqualTo(3);
        bucket.giveBack(Long.MAX_VALUE);
        assertThat(bucket.snapshot().available()).isEqualTo(5);
        assertThat(bucket.tryAcquire(5)).isTrue();
        assertThat(bucket.tryAcquire(1)).isFalse();
    }

    @Test
    void tokensGivenBackAreAvailableAtOnceAndKeepTheFraction() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/s").withCapacity(5), time);
        assertThat(bucket.tryAcquire(5)).isTrue();
        time.advance(Duration.ofMillis(400));
        bucket.giveBack(2);
        assertThat(bucket.decide(3).retryAfter()).isEqualTo(Duration.ofMillis(600));
        assertThat(bucket.tryAcquire(2)).isTrue();
    }

    @Test
    void aDecisionContainsTheTokensLeftAndTheTimesOfMore() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10/s").withCapacity(5), time);
        assertThat(bucket.decide(2)).satisfies(decision(Outcome.ALLOWED, 3, 0, 100, 200));
        time.advance(Duration.ofMillis(130));
        assertThat(bucket.decide(5)).satisfies(decision(Outcome.DENIED, 4, 70, 70, 70));
        assertThat(bucket.decide(6)).satisfies(decision(Outcome.NEVER_FITS, 4, 0, 70, 70));
        assertThat(bucket.decide(4)).satisfies(decision(Outcome.ALLOWED, 0, 0, 70, 470));
    }

    private static Consumer<Decision> decision(
            Outcome outcome, long remaining, long retryMillis, long nextTokenMillis, long resetMillis) {
        return decision -> {
            assertThat(decision.outcome()).isEqualTo(outcome);
            assertThat(decision.remaining()).isEqualTo(remaining);
            assertThat(decision.retryNanos()).isEqualTo(retryMillis * 1_000_000);
            assertThat(decision.waitNanos()).isZero();
            assertThat(decision.nextTokenNanos()).isEqualTo(nextTokenMillis * 1_000_000);
            assertThat(decision.resetNanos()).isEqualTo(resetMillis * 1_000_000);
            assertThat(decision.answers()).isEmpty();
            assertThat(decision.shadows()).isEmpty();
        };
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1, Long.MIN_VALUE})
    void rejectsACostBelowOne(long tokens) {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1/s"), time);
        String message = "tokens must be at least 1, but was " + tokens;
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.tryAcquire(tokens))
                .withMessage(message);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.decide(tokens))
                .withMessage(message);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.giveBack(tokens))
                .withMessage(message);
    }

    @ParameterizedTest
    @CsvSource({
        "10000000000/s, 1000000000000, GREEDY",
        "10000000000/s, 1000000000000, INTERVAL",
        "1/365d, 10, GREEDY",
        "1/365d, 10, INTERVAL",
        "30000001/1d, 30000001, GREEDY",
        "24/1us, 7, GREEDY",
    })
    void isStillRightAfterFourHundredIdleDays(String rate, long capacity, Refill refill) {
        TokenBucket bucket = TokenBucket.of(new BucketSpec(Rate.of(rate), capacity, refill), time);
        for (int i = 0; i < 30; i++) {
            assertThat(bucket.tryAcquire(1)).isTrue();
            time.advance(Duration.ofDays(400));
            assertThat(bucket.snapshot().available()).isEqualTo(capacity);
            assertThat(bucket.snapshot().resetAfter()).isZero();
        }
        assertThat(bucket.tryAcquire(capacity)).isTrue();
        assertThat(bucket.tryAcquire(capacity)).isFalse();
    }

    /** S3.4. */
    @Test
    void aSnapshotIsBroughtUpToDateFirst() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("600/1m").withCapacity(800), time);
        assertThat(bucket.tryAcquire(800)).isTrue();
        time.advance(Duration.ofMillis(1_250));
        assertThat(bucket.snapshot())
                .isEqualTo(new BucketSnapshot(
                        800, Rate.of("600/1m"), 12, Duration.ofMillis(50), Duration.ofMillis(78_750)));
    }

    @Test
    void aSnapshotShowsTheRateThatResultsFromRounding() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("30000001/1d"), time);
        Rate rate = bucket.snapshot().rate();
        assertThat(rate).isNotEqualTo(Rate.of("30000001/1d"));
        assertThat(loss(Rate.of("30000001/1d"), rate)).isBetween(0.0, 0.0001);
    }

    @ParameterizedTest
    @CsvSource({"600/1m", "7000/1m", "24/1us", "10000/1us", "1/365d", "23/1d", "17/1s", "23999/1s", "10000000000/1s"})
    void aRateThatAClockStepFitsIsExact(String rate) {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of(rate), time);
        assertThat(bucket.snapshot().rate()).isEqualTo(Rate.of(rate));
    }

    @Test
    void intervalRefillIsAlwaysExact() {
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("30000001/1d").withRefill(Refill.INTERVAL), time);
        assertThat(bucket.snapshot().rate()).isEqualTo(Rate.of("30000001/1d"));
    }

    /** THREATS: rates are rounded down by less than 1/10,000 in the whole domain; large primes are the hardest. */
    @RepeatedTest(300)
    void aRateIsRoundedDownByLessThanATenThousandth(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        Rate asked = Specs.randomRate(random);
        if (random.nextBoolean()) {
            asked = new Rate(primeUpTo(asked.tokens()), asked.period());
        }
        BucketSpec spec = new BucketSpec(asked, 1, Refill.GREEDY);
        assertThat(loss(asked, TokenBucket.of(spec, time).snapshot().rate()))
                .as("seed %d: %s", run.getCurrentRepetition(), asked)
                .isGreaterThanOrEqualTo(0)
                .isLessThan(0.0001);
    }

    private static long primeUpTo(long max) {
        BigInteger prime = BigInteger.valueOf(Math.max(max / 2, 2)).nextProbablePrime();
        return prime.longValueExact() <= max ? prime.longValueExact() : max;
    }

    /** Returns 1 - effective / configured, with an exact sign. */
    private static double loss(Rate asked, Rate got) {
        BigInteger wanted = BigInteger.valueOf(asked.tokens())
                .multiply(BigInteger.valueOf(got.period().toNanos()));
        BigInteger effective = BigInteger.valueOf(got.tokens())
                .multiply(BigInteger.valueOf(asked.period().toNanos()));
        return wanted.subtract(effective).doubleValue() / wanted.doubleValue();
    }

    /** A thread may be delayed between reading the clock and taking, while other threads take at later times. */
    @ParameterizedTest
    @CsvSource({"GREEDY", "INTERVAL"})
    void aCallDelayedAfterReadingTheClockIsNotDeniedAvailableTokens(Refill refill) {
        HeldUpTimeSource clock = new HeldUpTimeSource(Duration.ofMillis(5_900));
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10/1s").withRefill(refill), clock);
        clock.holdUpNextReader(Duration.ofMillis(500), () -> {
            assertThat(bucket.tryAcquire(9)).isTrue();
        });
        assertThat(bucket.tryAcquire(1)).isTrue();
        assertThat(bucket.tryAcquire(1)).isFalse();
    }

    /** S3.5: without a waiting call there is no promise, not even until the next tick. */
    @Test
    void reconfiguringAgainWithinAPeriodKeepsTheTokens() {
        time.advance(Duration.ofSeconds(10));
        BucketSpec spec = BucketSpec.of("5/1m").withCapacity(20).withRefill(Refill.INTERVAL);
        TokenBucket bucket = TokenBucket.of(spec, time);
        assertThat(bucket.tryAcquire(16)).isTrue();
        bucket.reconfigure(spec.withCapacity(7));
        assertThat(bucket.snapshot().available()).isEqualTo(4);
        bucket.reconfigure(spec.withCapacity(6));
        assertThat(bucket.snapshot().available()).isEqualTo(4);
        assertThat(bucket.snapshot().resetAfter()).isEqualTo(Duration.ofSeconds(50));
    }

    @Test
    void aBucketShowsNoLessThanNothing() {
        var clock = new Object() {
            long now = Duration.ofSeconds(5).toNanos();
        };
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("10/1s"), () -> clock.now);
        assertThat(bucket.tryAcquire(10)).isTrue();
        clock.now -= Duration.ofSeconds(1).toNanos();
        assertThat(bucket.snapshot())
                .isEqualTo(
                        new BucketSnapshot(10, Rate.of("10/1s"), 0, Duration.ofMillis(1_100), Duration.ofSeconds(2)));
        assertThat(bucket.decide(1)).satisfies(decision(Outcome.DENIED, 0, 1_100, 1_100, 2_000));
    }
}
