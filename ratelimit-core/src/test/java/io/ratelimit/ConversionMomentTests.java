package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The moment from which a conversion counts, if other calls took after the converting call had read the clock. */
class ConversionMomentTests {

    private static final long SECOND = Duration.ofSeconds(1).toNanos();
    private static final TickScale SLOW = scale("1/1s");
    private static final TickScale FAST = scale("10/1s");

    private final AtomicInteger reads = new AtomicInteger();

    private static TickScale scale(String rate) {
        return TickScale.of(BucketSpec.of(rate).withCapacity(100), 0);
    }

    /** Returns the state after a take at a moment, converted at that moment by a call that had read the clock at zero. */
    private BucketState converted(TickScale from, long cost, long moment, TickScale to) {
        BucketState state = new BucketState(from, 0);
        assertThat(state.take(cost, moment, 0)).isPositive();
        return BucketConversion.convert(state, to, 0, () -> {
            reads.incrementAndGet();
            return moment;
        });
    }

    @Test
    void aFasterRateBringsNothingForTheTimeBeforeATake() {
        BucketState converted = converted(SLOW, 60, 5 * SECOND, FAST);
        assertThat(FAST.tokensLeft(converted.missing(5 * SECOND))).isEqualTo(40);
    }

    /** The second conversion starts from the slow rate's state, which the first one had cut a fraction from. */
    @Test
    void theRateOfTheStateThatIsConvertedCounts() {
        TickScale slow = scale("3/1s");
        TickScale larger = TickScale.of(BucketSpec.of("10/1s").withCapacity(120), 0);
        long moment = 5 * SECOND + 1;
        BucketState state = new BucketState(slow, 0);
        assertThat(state.take(30, 5 * SECOND, 0)).isPositive();

        BucketState fast = BucketConversion.convert(state, FAST, moment, () -> moment);
        BucketState converted = BucketConversion.convert(fast, larger, 0, () -> moment);

        assertThat(larger.tokensLeft(converted.missing(moment))).isEqualTo(70);
    }

    @Test
    void aSlowerRateKeepsTheTokensOfTheTimeBeforeATake() {
        BucketState converted = converted(FAST, 60, SECOND / 2, SLOW);
        assertThat(SLOW.tokensLeft(converted.missing(SECOND / 2))).isEqualTo(40);
        assertThat(reads).hasValue(1);
    }

    @Test
    void theSameRateNeedsNoClock() {
        BucketState converted = converted(SLOW, 60, SECOND, scale("2/2s"));
        assertThat(SLOW.tokensLeft(converted.missing(SECOND))).isEqualTo(40);
        assertThat(reads).hasValue(0);
    }

    @Test
    void aTakeOfAllTokensAfterTheMomentReadIsNoDebt() {
        BucketState converted = converted(FAST, 100, SECOND, SLOW);
        assertThat(converted.missing(SECOND)).isEqualTo(SLOW.full());
        assertThat(reads).hasValue(1);
    }

    @Test
    void batchesAreConvertedByTheClock() {
        TickScale batches =
                TickScale.of(BucketSpec.of("10/1s").withCapacity(100).withRefill(BucketSpec.Refill.INTERVAL), 0);
        converted(batches, 60, SECOND / 2, SLOW);
        converted(FAST, 60, SECOND / 2, batches);
        assertThat(reads).hasValue(2);
    }
}
