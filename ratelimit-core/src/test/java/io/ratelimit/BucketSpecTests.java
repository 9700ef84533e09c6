package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BucketSpecTests {

    @Test
    void holdsOnePeriodsTokensByDefault() {
        BucketSpec spec = BucketSpec.of("600/1m");
        assertThat(spec).isEqualTo(new BucketSpec(Rate.of("600/1m"), 600, Refill.GREEDY));
        assertThat(spec.withCapacity(800).capacity()).isEqualTo(800);
        assertThat(spec.withRefill(Refill.INTERVAL).refill()).isEqualTo(Refill.INTERVAL);
    }

    @ParameterizedTest
    @CsvSource({"0", "-1", "1000000000001", "9223372036854775807", "-9223372036854775808"})
    void rejectsACapacityOutsideTheDomain(long capacity) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.of("10/s").withCapacity(capacity))
                .withMessage("capacity must be between 1 and 1,000,000,000,000, but was " + capacity);
    }

    @Test
    void rejectsARateWhoseTokensAreNoCapacity() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.of("10000000000/1d").withCapacity(0))
                .withMessage("capacity must be between 1 and 1,000,000,000,000, but was 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.of("1000000000001/1d"))
                .withMessage("capacity must be between 1 and 1,000,000,000,000, but was 1000000000001");
    }

    @Test
    void mayTakeTenYearsFromEmptyToFullAndNoLonger() {
        assertThat(BucketSpec.of("1/365d").withCapacity(10).timeToFull()).isEqualTo(Duration.ofDays(3650));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.of("1/365d").withCapacity(11))
                .withMessage("the time from empty to full must be at most ten years, but was 11 tokens at 1/365d:"
                        + " raise the rate or lower the capacity");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> BucketSpec.of("1/1d").withCapacity(1_000_000_000_000L))
                .withMessage("the time from empty to full must be at most ten years, but was 1000000000000 tokens at"
                        + " 1/1d: raise the rate or lower the capacity");
    }

    @ParameterizedTest
    @CsvSource({
        "600/1m, 800, GREEDY, PT1M20S",
        "1/1s, 1, GREEDY, PT1S",
        "3/1s, 1, GREEDY, PT0.333333334S",
        "10000000000/1s, 1, GREEDY, PT0.000000001S",
        "10000000000/1s, 1000000000000, GREEDY, PT1M40S",
        "600/1m, 600, INTERVAL, PT1M",
        "600/1m, 601, INTERVAL, PT2M",
        "600/1m, 1, INTERVAL, PT1M",
    })
    void knowsHowLongItTakesFromEmptyToFull(String rate, long capacity, Refill refill, Duration timeToFull) {
        assertThat(new BucketSpec(Rate.of(rate), capacity, refill).timeToFull()).isEqualTo(timeToFull);
    }

    /** The fastest rate and the largest capacity are those that a spec without a rate has inside. */
    @Test
    void theFastestWrittenRateIsARate() {
        BucketSpec fastest = new BucketSpec(Rate.of("10000/1us"), 1_000_000_000_000L, Refill.GREEDY);
        assertThat(fastest.withInFlight(4).hasRate()).isTrue();
        assertThat(BucketSpec.inFlight(4).hasRate()).isFalse();
        assertThat(BucketSpec.inFlight(4).withInFlight(5).hasRate()).isFalse();
    }

    @Test
    void isFormattedWithTheLargestUnit() {
        assertThat(BucketSpec.of("600/minute").withCapacity(800)).hasToString("600/1m, capacity 800");
        assertThat(BucketSpec.of("5/s").withRefill(Refill.INTERVAL))
                .hasToString("5/1s, capacity 5, refilled at intervals");
    }
}
