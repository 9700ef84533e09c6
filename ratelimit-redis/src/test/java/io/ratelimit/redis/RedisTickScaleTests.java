package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import io.ratelimit.Specs;
import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Duration;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class RedisTickScaleTests {

    private static RedisTickScale ticks(String rate, long capacity) {
        return RedisTickScale.of(BucketSpec.of(rate).withCapacity(capacity));
    }

    @Test
    void aMicrosecondAndATokenAreWholeNumbersOfTicks() {
        assertThat(ticks("600/1m", 800)).isEqualTo(new RedisTickScale(1, 100_000, 800, 1));
        assertThat(ticks("7000/1m", 800)).isEqualTo(new RedisTickScale(7, 60_000, 800, 1));
        assertThat(ticks("10000000000/1s", 1_000_000_000_000L))
                .isEqualTo(new RedisTickScale(10_000, 1, 1_000_000_000_000L, 1));
        assertThat(ticks("1/365d", 10)).isEqualTo(new RedisTickScale(1, 31_536_000_000_000L, 10, 1));
    }

    @Test
    void withIntervalRefillAStepIsThePeriodAndATokenAPowerOfTwo() {
        assertThat(RedisTickScale.of(new BucketSpec(Rate.of("5/1m"), 8, Refill.INTERVAL)))
                .isEqualTo(new RedisTickScale(5 << 20, 1 << 20, 8, 60_000_000));
        assertThat(RedisTickScale.of(new BucketSpec(Rate.of("1000000/1s"), 8, Refill.INTERVAL)))
                .isEqualTo(new RedisTickScale(1_000_000L << 15, 1 << 15, 8, 1_000_000));
    }

    @Test
    void aRateThatFitsNoTickIsRoundedDownALittle() {
        BucketSpec spec = BucketSpec.of("30000001/1d");
        RedisTickScale ticks = RedisTickScale.of(spec);
        assertThat(ticks.stepMicros()).isEqualTo(1);
        assertThat(ticks.rate(spec)).isNotEqualTo(spec.rate());
    }

    @Test
    void aBucketThatTakesYearsToFillCountsMillisecondsIfNoMicrosecondFits() {
        BucketSpec spec = BucketSpec.of("86400000001/30d").withCapacity(1_000_000_000_000L);
        assertThat(RedisTickScale.of(spec).stepMicros()).isEqualTo(1_000);
    }

    /** Over the whole domain: no number that Lua couldn't count exactly, and no rate that is off by 1/10,000. */
    @RepeatedTest(20)
    void everySpecFits(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 2_000; i++) {
            BucketSpec spec = Specs.randomSpec(random);
            RedisTickScale ticks = RedisTickScale.of(spec);
            String step = "seed %d, step %d, %s: %s".formatted(run.getCurrentRepetition(), i, spec, ticks);
            assertThat(ticks.perStep()).as(step).isPositive();
            assertThat(ticks.perToken()).as(step).isPositive();
            assertThat(ticks.full()).as(step).isBetween(1L, RedisTickScale.MAX_TICKS / 2);
            assertThat(ticks.maxWait()).as(step).isGreaterThanOrEqualTo(Duration.ofHours(1));
            assertThat(RedisBucketState.named(ticks.name())).as(step).isEqualTo(ticks);
            if (spec.refill() == Refill.GREEDY) {
                assertThat(loss(ticks, spec.rate())).as(step).isBetween(BigDecimal.ZERO, new BigDecimal("0.0001"));
                assertThat(loss(ticks, spec.rate()).signum() == 0)
                        .as(step)
                        .isEqualTo(ticks.rate(spec).equals(spec.rate()));
                assertThat(Math.abs(perSecond(ticks.rate(spec)) / perSecond(spec.rate()) - 1))
                        .as(step)
                        .isLessThan(0.000_1);
            }
        }
    }

    private static double perSecond(Rate rate) {
        return 1e9 * rate.tokens() / rate.period().toNanos();
    }

    private static BigDecimal loss(RedisTickScale ticks, Rate rate) {
        BigDecimal ours = BigDecimal.valueOf(ticks.perStep())
                .multiply(BigDecimal.valueOf(rate.period().toNanos() / 1_000));
        BigDecimal exact = BigDecimal.valueOf(rate.tokens())
                .multiply(BigDecimal.valueOf(ticks.perToken()))
                .multiply(BigDecimal.valueOf(ticks.stepMicros()));
        return exact.subtract(ours).divide(exact, MathContext.DECIMAL64);
    }
}
