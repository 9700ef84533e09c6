package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import java.time.Duration;
import java.time.ZoneId;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LocalShareTests {

    @ParameterizedTest
    @CsvSource({
        "600/1m, 800, 0.25, 200",
        "100/1s, 100, 0.29, 29",
        "10/1s,  10,  0.1,  1",
        "1/2s,   2,   0.5,  1",
        "3/1d,   100, 0.01, 1",
        "7/1us,  100, 0.3,  30",
    })
    void capacityAndRateAreCutToThePart(String rate, long capacity, double part, long expected) {
        BucketSpec spec = BucketSpec.of(rate).withCapacity(capacity);
        BucketSpec share = new LocalShare(part).scaled(spec);

        assertThat(share.capacity()).isEqualTo(expected);
        assertThat(perSecond(share.rate()))
                .isBetween(perSecond(spec.rate()) * part * 0.999, perSecond(spec.rate()) * part * 1.000_000_001);
    }

    @ParameterizedTest
    @CsvSource({
        "60/1m,  0.5,  30/1m",
        "600/1m, 0.25, 150/1m",
        "10/1s,  0.25, 5/2s",
        "1/2s,   0.5,  1/4s",
        "5/1m,   0.2,  1/1m",
        "3/1d,   0.01, 3/100d",
        "7/1us,  0.3,  21/10us",
    })
    void theRateIsExactAndShort(String rate, double part, String expected) {
        BucketSpec spec = BucketSpec.of(rate).withCapacity(1_000);
        assertThat(new LocalShare(part).scaled(spec).rate()).hasToString(expected);
    }

    @ParameterizedTest
    @CsvSource({
        "1/1h,      1,  0.05,   GREEDY",
        "1/1h,      1,  0.99,   GREEDY",
        "3/1d,      2,  0.01,   GREEDY",
        "100/1h,    100, 0.001, INTERVAL",
        "1/365d,    1,  0.5,    GREEDY",
        "1/365d,    10, 0.5,    GREEDY",
        "1/365d,    10, 0.5,    INTERVAL",
        "1/300d,    10, 0.5,    GREEDY",
        "10/365d,   100, 0.0999, GREEDY",
    })
    void aShareOfLessThanATokenOrOneInTheLongestPeriodIsNone(String rate, long capacity, double part, Refill refill) {
        BucketSpec spec = BucketSpec.of(rate).withCapacity(capacity).withRefill(refill);
        assertThat(new LocalShare(part).scaled(spec)).isNull();
    }

    @Test
    void aShareOfExactlyOneTokenIsOne() {
        assertThat(new LocalShare(0.05).scaled(BucketSpec.of("20/1h"))).isEqualTo(BucketSpec.of("1/1h"));
        assertThat(new LocalShare(0.5).scaled(BucketSpec.of("2/365d"))).isEqualTo(BucketSpec.of("1/365d"));
    }

    @Test
    void aCalendarQuotaKeepsItsPeriod() {
        BucketSpec spec = BucketSpec.of("100/month").withCalendar(ZoneId.of("Europe/Berlin"));

        assertThat(new LocalShare(0.25).scaled(spec)).isEqualTo(spec.with(Rate.of("25/month"), 25));
        assertThat(new LocalShare(0.001).scaled(spec)).isNull();
    }

    @Test
    void batchesComeAsOftenAndAreSmaller() {
        BucketSpec spec = BucketSpec.of("100/1h").withCapacity(1_000).withRefill(Refill.INTERVAL);

        assertThat(new LocalShare(0.25).scaled(spec).rate()).isEqualTo(Rate.of("25/1h"));
        assertThat(new LocalShare(0.001).scaled(spec).rate())
                .as("a tenth of a token is a token in ten times the time")
                .isEqualTo(Rate.of("1/10h"));
    }

    @Test
    void aShareOfOneIsTheSpecItself() {
        BucketSpec spec = BucketSpec.of("100/1h");

        assertThat(new LocalShare(1).scaled(spec)).isSameAs(spec);
    }

    /** Every valid spec has a share or less than a token, and the share is never too large. */
    @RepeatedTest(50)
    void everySpecHasAShare(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 200; i++) {
            long tokens = 1 + (long) Math.exp(random.nextDouble() * Math.log(1e9));
            long micros = 1 + (long) Math.exp(random.nextDouble() * Math.log(365L * 86_400_000_000.0 - 2));
            long capacity = 1 + (long) Math.exp(random.nextDouble() * Math.log(1e12));
            double part = random.nextDouble(1e-4, 1);
            BucketSpec spec;
            try {
                spec = new BucketSpec(
                        new Rate(tokens, Duration.ofNanos(micros * 1_000)),
                        capacity,
                        random.nextBoolean() ? Refill.GREEDY : Refill.INTERVAL);
            } catch (IllegalArgumentException outsideTheDomain) {
                continue;
            }
            BucketSpec share = new LocalShare(part).scaled(spec);
            if (share == null) {
                assertThat(Math.min(capacity * part, perSecond(spec.rate()) * part * 365 * 86_400))
                        .as("seed %d: %s of %s", run.getCurrentRepetition(), part, spec)
                        .isLessThan(1.000_001);
            } else {
                assertThat((double) share.capacity()).isLessThanOrEqualTo(capacity * part);
                assertThat(perSecond(share.rate()))
                        .as("seed %d: %s of %s", run.getCurrentRepetition(), part, spec)
                        .isLessThanOrEqualTo(perSecond(spec.rate()) * part * 1.000_000_001);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0, -1, 1.01, Double.NaN, Double.POSITIVE_INFINITY})
    void aShareOutsideItsRangeIsRejected(double share) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new LocalShare(share))
                .withMessage("local-share must be above 0 and at most 1, but was " + share);
    }

    private static double perSecond(Rate rate) {
        return rate.tokens() * 1e9 / rate.period().toNanos();
    }
}
