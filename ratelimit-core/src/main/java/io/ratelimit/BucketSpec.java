package io.ratelimit;

import static io.ratelimit.Check.check;

import java.math.BigInteger;
import java.time.Duration;

/**
 * The size and the refill rate of a token bucket. A new bucket is full.
 *
 * @param rate the tokens that come back, and how fast
 * @param capacity the tokens a full bucket holds, and so the largest burst; from 1 to 10^12. From empty to full it
 *     may take ten years at most
 * @param refill whether tokens come back one by one or a period's worth at a time
 */
public record BucketSpec(Rate rate, long capacity, Refill refill) {

    /** How tokens come back. */
    public enum Refill {
        /** One by one, as time passes. */
        GREEDY,
        /** The whole batch of a period at once, at fixed ticks. */
        INTERVAL
    }

    static final long MAX_CAPACITY = 1_000_000_000_000L;
    private static final Duration LONGEST_TO_FULL = Duration.ofDays(3650);

    public BucketSpec {
        check(capacity >= 1 && capacity <= MAX_CAPACITY, "capacity", "between 1 and 1,000,000,000,000", capacity);
        check(
                nanosToFull(rate, capacity, refill).compareTo(BigInteger.valueOf(LONGEST_TO_FULL.toNanos())) <= 0,
                "the time from empty to full",
                "at most ten years",
                capacity + " tokens at " + rate + ": raise the rate or lower the capacity");
    }

    /** A greedy bucket of the rate, such as {@code 600/1m}, that holds one period's tokens. */
    public static BucketSpec of(String rate) {
        return of(Rate.of(rate));
    }

    /** A greedy bucket of the rate that holds one period's tokens. */
    public static BucketSpec of(Rate rate) {
        return new BucketSpec(rate, rate.tokens(), Refill.GREEDY);
    }

    /** The same at another rate. A capacity of one period's tokens, as by default, goes along; any other stays. */
    public BucketSpec withRate(Rate rate) {
        return new BucketSpec(rate, capacity == this.rate.tokens() ? rate.tokens() : capacity, refill);
    }

    public BucketSpec withCapacity(long capacity) {
        return new BucketSpec(rate, capacity, refill);
    }

    public BucketSpec withRefill(Refill refill) {
        return new BucketSpec(rate, capacity, refill);
    }

    /** How long an empty bucket takes at most until it is full, rounded up to whole nanoseconds. */
    public Duration timeToFull() {
        long periodNanos = rate.period().toNanos();
        boolean fits = Math.multiplyHigh(capacity, periodNanos) == 0 && capacity * periodNanos > 0;
        return Duration.ofNanos(
                fits && refill == Refill.GREEDY
                        ? (capacity * periodNanos - 1) / rate.tokens() + 1
                        : nanosToFull(rate, capacity, refill).longValueExact());
    }

    private static BigInteger nanosToFull(Rate rate, long capacity, Refill refill) {
        BigInteger missing = BigInteger.valueOf(capacity);
        BigInteger tokens = BigInteger.valueOf(rate.tokens());
        BigInteger period = BigInteger.valueOf(rate.period().toNanos());
        return refill == Refill.INTERVAL
                ? divideUp(missing, tokens).multiply(period)
                : divideUp(missing.multiply(period), tokens);
    }

    private static BigInteger divideUp(BigInteger dividend, BigInteger divisor) {
        return dividend.add(divisor).subtract(BigInteger.ONE).divide(divisor);
    }

    /** The spec as it is written: {@code 600/1m, capacity 800}. */
    @Override
    public String toString() {
        return rate + ", capacity " + capacity + (refill == Refill.INTERVAL ? ", refilled at intervals" : "");
    }
}
