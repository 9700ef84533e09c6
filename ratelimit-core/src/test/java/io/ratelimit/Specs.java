package io.ratelimit;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Answer;
import java.math.BigInteger;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/** Random rates and specs of the whole domain: every order of magnitude is as likely as any other. */
public final class Specs {

    private static final long LONGEST_PERIOD = Duration.ofDays(365).toNanos();
    private static final BigInteger TEN_YEARS =
            BigInteger.valueOf(Duration.ofDays(3650).toNanos());
    private static final long[] UNITS = {1_000, 1_000_000, 1_000_000_000, 60_000_000_000L, 86_400_000_000_000L};

    /** Microseconds; no large common factors. */
    private static final long[] PERIODS = {999, 7_000, 1_000_003, 10_000_000};

    private Specs() {}

    public static Rate randomRate(SplittableRandom random) {
        long period = upTo(LONGEST_PERIOD, random);
        long unit = UNITS[random.nextInt(UNITS.length)];
        period = Math.max(period - period % unit, unit);
        return new Rate(upTo(10 * period, random), Duration.ofNanos(period));
    }

    public static BucketSpec randomSpec(SplittableRandom random) {
        Rate rate = randomRate(random);
        Refill refill = Refill.values()[random.nextInt(2)];
        return new BucketSpec(rate, upTo(largestCapacity(rate, refill), random), refill);
    }

    private static long largestCapacity(Rate rate, Refill refill) {
        BigInteger tokens = BigInteger.valueOf(rate.tokens());
        BigInteger period = BigInteger.valueOf(rate.period().toNanos());
        BigInteger ofTenYears = refill == Refill.INTERVAL
                ? TEN_YEARS.divide(period).multiply(tokens)
                : TEN_YEARS.multiply(tokens).divide(period);
        return ofTenYears.min(BigInteger.valueOf(BucketSpec.MAX_CAPACITY)).longValueExact();
    }

    /** Returns a spec of a few tokens, so that random calls often meet its limits; its rate is exact in nanoseconds. */
    private static BucketSpec smallSpec(SplittableRandom random, Refill refill) {
        Duration period = Duration.ofNanos(1_000 * PERIODS[random.nextInt(PERIODS.length)]);
        return new BucketSpec(new Rate(1 + random.nextInt(9), period), 1 + random.nextInt(12), refill);
    }

    /** Returns a spec of a few tokens; one in four with interval refill. */
    public static BucketSpec smallSpec(SplittableRandom random) {
        return smallSpec(random, random.nextInt(4) == 0 ? Refill.INTERVAL : Refill.GREEDY);
    }

    /** Returns two to four such specs that differ in any of rate, period and capacity; one time in four, in the refill. */
    public static List<BucketSpec> smallSpecs(SplittableRandom random) {
        BucketSpec first = smallSpec(random);
        boolean mixed = random.nextInt(4) == 0;
        return Stream.generate(() -> {
                    BucketSpec other = mixed ? smallSpec(random) : smallSpec(random, first.refill());
                    Rate rate = random.nextBoolean()
                            ? other.rate()
                            : new Rate(other.rate().tokens(), first.rate().period());
                    return new BucketSpec(
                            rate, random.nextBoolean() ? first.capacity() : other.capacity(), other.refill());
                })
                .limit(2 + random.nextInt(3))
                .toList();
    }

    /** Returns about the time that a token needs to come back. */
    public static long tokenNanos(BucketSpec spec) {
        return spec.rate().period().toNanos() / spec.rate().tokens();
    }

    /** Returns the time until a few nanoseconds before the next batch, at the batch, or after it. */
    public static long nanosUntilNearBatch(BucketSpec spec, long now, SplittableRandom random) {
        long period = spec.rate().period().toNanos();
        return Math.max(period - Math.floorMod(now, period) - 1_000 + 1_000 * random.nextInt(3), 0);
    }

    /** Returns a longest wait of a few tokens, or of up to three batches; mostly zero. */
    public static long waitNanos(BucketSpec spec, SplittableRandom random) {
        boolean batches = spec.refill() == Refill.INTERVAL && random.nextBoolean();
        long most = batches ? 3 * spec.rate().period().toNanos() : 5 * tokenNanos(spec);
        return random.nextInt(3) > 0 ? 0 : random.nextLong(most);
    }

    /** A number from 1 on, of a random order of magnitude. */
    public static long upTo(long max, SplittableRandom random) {
        long cut = max >> random.nextInt(64 - Long.numberOfLeadingZeros(max));
        return random.nextLong(cut) + 1;
    }

    /** Returns allowed answers to these charges, without receipts. */
    public static List<Answer> taken(Charge... charges) {
        return Arrays.stream(charges).map(Answer::allowed).toList();
    }
}
