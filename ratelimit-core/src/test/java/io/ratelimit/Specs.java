package io.ratelimit;

import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Decision.Answer;
import java.math.BigInteger;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/** Random rates and specs of the whole domain: every order of magnitude is as likely as any other. */
public final class Specs {

    private static final long LONGEST_PERIOD = Duration.ofDays(365).toNanos();
    private static final BigInteger TEN_YEARS =
            BigInteger.valueOf(Duration.ofDays(3650).toNanos());
    private static final long[] UNITS = {1_000, 1_000_000, 1_000_000_000, 60_000_000_000L, 86_400_000_000_000L};

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
