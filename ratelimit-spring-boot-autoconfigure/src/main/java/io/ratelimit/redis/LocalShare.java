package io.ratelimit.redis;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.Duration;

/** The part of capacity and rate that one node grants by itself. Never more than that; thread-safe. */
final class LocalShare {

    private static final long MICROSECOND = 1_000;
    private static final long LONGEST = Duration.ofDays(365).toNanos();
    private static final long PRECISE = 10_000;

    private final BigDecimal share;
    private final PerSpec<BucketSpec, BucketSpec> shares = new PerSpec<>(this::scale);

    /**
     * @throws IllegalArgumentException if the share isn't above 0 and at most 1
     */
    LocalShare(double share) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("local-share must be above 0 and at most 1, but was " + share);
        }
        this.share = BigDecimal.valueOf(share);
    }

    BucketSpec of(BucketSpec spec) {
        return share.compareTo(BigDecimal.ONE) == 0 ? spec : shares.of(spec);
    }

    private BucketSpec scale(BucketSpec spec) {
        Rate rate = spec.refill() == Refill.INTERVAL ? batches(spec.rate()) : stream(spec.rate());
        long capacity = Math.max(part(spec.capacity()), 1);
        try {
            return new BucketSpec(rate, capacity, spec.refill());
        } catch (IllegalArgumentException tooSlowByRounding) {
            return new BucketSpec(rate, 1, spec.refill());
        }
    }

    private long part(long whole) {
        return share.multiply(BigDecimal.valueOf(whole)).longValue();
    }

    /** As often, but fewer; where that would be less than one, one and not so often, but once a year. */
    private Rate batches(Rate rate) {
        long tokens = part(rate.tokens());
        return tokens >= 1 ? new Rate(tokens, rate.period()) : new Rate(1, timeOfOne(rate));
    }

    private Duration timeOfOne(Rate rate) {
        BigDecimal micros = BigDecimal.valueOf(rate.period().toNanos() / MICROSECOND)
                .divide(share.multiply(BigDecimal.valueOf(rate.tokens())), RoundingMode.CEILING);
        return Duration.ofNanos(Math.min(micros.longValue() * MICROSECOND, LONGEST));
    }

    /** The part exactly, as people would write it: over the shortest period whose part is a whole number of tokens. */
    private Rate stream(Rate rate) {
        BigDecimal part = share.multiply(BigDecimal.valueOf(rate.tokens()));
        long times = timesUntilWhole(part);
        return times <= LONGEST / rate.period().toNanos()
                ? new Rate(
                        part.multiply(BigDecimal.valueOf(times)).longValueExact(),
                        rate.period().multipliedBy(times))
                : nearly(rate);
    }

    private static long timesUntilWhole(BigDecimal part) {
        BigDecimal shortest = part.stripTrailingZeros();
        BigInteger one = BigInteger.TEN.pow(Math.max(shortest.scale(), 0));
        BigInteger times = shortest.scale() <= 0 ? BigInteger.ONE : one.divide(one.gcd(shortest.unscaledValue()));
        return times.bitLength() < Long.SIZE ? times.longValue() : Long.MAX_VALUE;
    }

    /**
     * Over a period that is long enough for so many tokens that cutting off a part of one makes no difference; where no
     * year is long enough for that, a microsecond makes no difference to the time of one.
     */
    private Rate nearly(Rate rate) {
        long most = LONGEST / rate.period().toNanos();
        long wanted = share.multiply(BigDecimal.valueOf(rate.tokens())).compareTo(BigDecimal.ONE) >= 0
                ? PRECISE / part(rate.tokens()) + 1
                : most;
        long times = Math.min(wanted, most);
        long tokens = part(rate.tokens() * times);
        return tokens >= PRECISE ? new Rate(tokens, rate.period().multipliedBy(times)) : new Rate(1, timeOfOne(rate));
    }
}
