package io.ratelimit.remote;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.Duration;

/** The part of capacity and rate that one instance grants by itself; rounding never makes it larger. Thread-safe. */
final class LocalShare {

    private static final long MICROSECOND = 1_000;
    private static final long MAX_PERIOD = Duration.ofDays(365).toNanos();
    /** A number of tokens for which cutting off a part of one makes no difference. */
    private static final long PRECISE = 10_000;

    private final BigDecimal share;
    private final SpecCache<BucketSpec, BucketSpec> shares = new SpecCache<>(this::scale);

    /**
     * @throws IllegalArgumentException if the share isn't above 0 and at most 1
     */
    LocalShare(double share) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("local-share must be above 0 and at most 1, but was " + share);
        }
        this.share = BigDecimal.valueOf(share);
    }

    /** Returns the share of a spec. */
    BucketSpec scaled(BucketSpec spec) {
        return share.compareTo(BigDecimal.ONE) == 0 ? spec : shares.get(spec);
    }

    private BucketSpec scale(BucketSpec spec) {
        Rate rate =
                switch (spec.refill()) {
                    case GREEDY -> scaleStream(spec.rate());
                    case INTERVAL -> scaleBatches(spec.rate());
                    case CALENDAR ->
                        new Rate(
                                Math.max(part(spec.rate().tokens()), 1),
                                spec.rate().period());
                };
        long capacity = Math.max(part(spec.capacity()), 1);
        try {
            return spec.with(rate, capacity);
        } catch (IllegalArgumentException tooSlow) {
            return spec.with(rate, 1);
        }
    }

    private long part(long whole) {
        return share.multiply(BigDecimal.valueOf(whole)).longValue();
    }

    /**
     * Returns a rate with the same period and fewer tokens. If that is less than one token, returns one token over a
     * longer period, of at most a year.
     */
    private Rate scaleBatches(Rate rate) {
        long tokens = part(rate.tokens());
        return tokens >= 1 ? new Rate(tokens, rate.period()) : new Rate(1, timeForOne(rate));
    }

    private Duration timeForOne(Rate rate) {
        BigDecimal micros = BigDecimal.valueOf(rate.period().toNanos() / MICROSECOND)
                .divide(share.multiply(BigDecimal.valueOf(rate.tokens())), RoundingMode.CEILING);
        return Duration.ofNanos(Math.min(micros.longValue() * MICROSECOND, MAX_PERIOD));
    }

    /** Returns the exact part, over the shortest period in which it is a whole number of tokens. */
    private Rate scaleStream(Rate rate) {
        BigDecimal part = share.multiply(BigDecimal.valueOf(rate.tokens()));
        long times = timesUntilWhole(part);
        return times <= MAX_PERIOD / rate.period().toNanos()
                ? new Rate(
                        part.multiply(BigDecimal.valueOf(times)).longValueExact(),
                        rate.period().multipliedBy(times))
                : scaleRoughly(rate);
    }

    private static long timesUntilWhole(BigDecimal part) {
        BigDecimal shortest = part.stripTrailingZeros();
        BigInteger one = BigInteger.TEN.pow(Math.max(shortest.scale(), 0));
        BigInteger times = shortest.scale() <= 0 ? BigInteger.ONE : one.divide(one.gcd(shortest.unscaledValue()));
        return times.bitLength() < Long.SIZE ? times.longValue() : Long.MAX_VALUE;
    }

    /**
     * Returns nearly the part, over a period with at least {@link #PRECISE} tokens. If a year has fewer tokens, the time for
     * one token is rounded up to a microsecond instead.
     */
    private Rate scaleRoughly(Rate rate) {
        long maxTimes = MAX_PERIOD / rate.period().toNanos();
        long wanted = share.multiply(BigDecimal.valueOf(rate.tokens())).compareTo(BigDecimal.ONE) >= 0
                ? PRECISE / part(rate.tokens()) + 1
                : maxTimes;
        long times = Math.min(wanted, maxTimes);
        long tokens = part(rate.tokens() * times);
        return tokens >= PRECISE ? new Rate(tokens, rate.period().multipliedBy(times)) : new Rate(1, timeForOne(rate));
    }
}
