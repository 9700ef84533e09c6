package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketConversion.Ticks;
import java.math.BigInteger;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class TickScaleTests {

    /** A tick gained by each change would add up to tokens. */
    @Test
    void noConversionGainsAPartOfAToken() {
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 20_000; i++) {
            BucketSpec spec = Specs.smallSpec(random).withRefill(BucketSpec.Refill.GREEDY);
            TickScale from = TickScale.of(spec, 0);
            TickScale to = TickScale.of(Specs.smallSpec(random), 0);
            long missing = random.nextLong(from.full() + 1);
            long converted = new Ticks(from, to).missing(missing, random.nextLong(Long.MAX_VALUE / 4));
            assertThat(product(to.full() - converted, from.price(1)))
                    .isLessThanOrEqualTo(product(from.full() - missing, to.price(1)));
        }
    }

    /** A change to interval refill takes off the part of the batch that counts as earned; the worth may fall below zero. */
    @Test
    void noWorthIsRoundedUp() {
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 20_000; i++) {
            BucketSpec spec = Specs.smallSpec(random).withRefill(BucketSpec.Refill.INTERVAL);
            TickScale from = TickScale.of(Specs.smallSpec(random).withRefill(BucketSpec.Refill.GREEDY), 0);
            TickScale to = TickScale.of(spec, 0);
            long missing = random.nextLong(from.full() + 1);
            long nanos = random.nextLong(Long.MAX_VALUE / 4);
            long period = spec.rate().period().toNanos();
            BigInteger earned =
                    product(spec.rate().tokens(), nanos % period).multiply(product(from.price(1), to.price(1)));
            BigInteger worth = product(from.full() - missing, to.price(1))
                    .multiply(BigInteger.valueOf(period))
                    .subtract(earned);
            long kept = to.full() - new Ticks(from, to).worthMissing(missing, nanos);
            assertThat(product(kept, from.price(1)).multiply(BigInteger.valueOf(period)))
                    .isLessThanOrEqualTo(worth);
        }
    }

    @Test
    void aQuotientIsExactAndRoundedDown() {
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 100_000; i++) {
            long c = 1 + (random.nextLong() >>> 9 + random.nextInt(50));
            long b = random.nextLong(c);
            long a = random.nextLong() >> 3 + random.nextInt(55);
            BigInteger[] exact = product(a, b).divideAndRemainder(BigInteger.valueOf(c));
            long floor = exact[0].longValueExact() - (exact[1].signum() < 0 ? 1 : 0);
            assertThat(Ticks.quotient(a, b, c)).as("%d * %d / %d", a, b, c).isEqualTo(floor);
        }
    }

    private static BigInteger product(long a, long b) {
        return BigInteger.valueOf(a).multiply(BigInteger.valueOf(b));
    }
}
