package io.ratelimit;

import static io.ratelimit.Check.check;

import java.math.BigInteger;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;

/**
 * The capacity and the refill rate of a token bucket. A new bucket is full. From empty to full it may take at most ten
 * years.
 *
 * @param rate the speed at which tokens come back
 * @param capacity the tokens of a full bucket, and so the largest burst; from 1 to 10^12
 * @param refill whether tokens come back one by one or a period's worth at a time
 * @param zone the zone of the days, weeks or months of calendar refill; UTC for any other refill
 */
public record BucketSpec(Rate rate, long capacity, Refill refill, ZoneId zone) {

    /** The manner in which tokens come back. */
    public enum Refill {
        /** One by one, as time passes. */
        GREEDY,
        /** A period's tokens at once, at the end of each period of the clock. */
        INTERVAL,
        /** A period's tokens at once, at midnight, on Monday or on the first of the month, for rates a day, week or month. */
        CALENDAR
    }

    static final long MAX_CAPACITY = 1_000_000_000_000L;
    private static final long MAX_NANOS_TO_FULL = Duration.ofDays(3650).toNanos();

    /**
     * @throws IllegalArgumentException if the capacity or the time from empty to full is outside its range, or the
     *     calendar has no such period
     */
    public BucketSpec {
        zone = refill == Refill.CALENDAR ? zone : ZoneOffset.UTC;
        check(
                refill != Refill.CALENDAR || CalendarClock.hasPeriodOf(rate),
                "the rate of calendar refill",
                "tokens a day, a week or a month, such as 10000/month",
                rate);
        check(capacity >= 1 && capacity <= MAX_CAPACITY, "capacity", "between 1 and 1,000,000,000,000", capacity);
        check(
                nanosToFull(rate, capacity, refill) <= MAX_NANOS_TO_FULL,
                "the time from empty to full",
                "at most ten years",
                capacity + " tokens at " + rate + ": raise the rate or lower the capacity");
    }

    /**
     * Creates a spec whose calendar, if it has one, is that of UTC.
     *
     * @throws IllegalArgumentException as the other constructor
     */
    public BucketSpec(Rate rate, long capacity, Refill refill) {
        this(rate, capacity, refill, ZoneOffset.UTC);
    }

    /**
     * Returns the spec of a greedy bucket that holds one period's tokens.
     *
     * @param rate the rate as text, such as {@code 600/1m}
     * @throws IllegalArgumentException if the text is not a rate, or the capacity is outside its range
     */
    public static BucketSpec of(String rate) {
        return of(Rate.of(rate));
    }

    /**
     * Returns the spec of a greedy bucket that holds one period's tokens.
     *
     * @throws IllegalArgumentException if the capacity is outside its range
     */
    public static BucketSpec of(Rate rate) {
        return new BucketSpec(rate, rate.tokens(), Refill.GREEDY);
    }

    /**
     * Returns this spec with another rate. A capacity of one period's tokens, the default, follows the rate; any other
     * stays.
     *
     * @throws IllegalArgumentException if the capacity or the time from empty to full is then outside its range
     */
    public BucketSpec withRate(Rate rate) {
        return with(rate, capacity == this.rate.tokens() ? rate.tokens() : capacity);
    }

    /**
     * Returns this spec with another capacity.
     *
     * @throws IllegalArgumentException if the capacity or the time from empty to full is then outside its range
     */
    public BucketSpec withCapacity(long capacity) {
        return with(rate, capacity);
    }

    /**
     * Returns this spec with another manner of refill.
     *
     * @throws IllegalArgumentException if the time from empty to full is then outside its range
     */
    public BucketSpec withRefill(Refill refill) {
        return new BucketSpec(rate, capacity, refill, zone);
    }

    /**
     * Returns this spec with calendar refill in a zone.
     *
     * @throws IllegalArgumentException if the calendar has no such period as the rate
     */
    public BucketSpec withCalendar(ZoneId zone) {
        return new BucketSpec(rate, capacity, Refill.CALENDAR, zone);
    }

    /**
     * Returns a spec with another rate and capacity, and the same manner of refill.
     *
     * @throws IllegalArgumentException if the capacity or the time from empty to full is then outside its range, or the
     *     calendar has no such period
     */
    public BucketSpec with(Rate rate, long capacity) {
        return new BucketSpec(rate, capacity, refill, zone);
    }

    /** Returns the longest time from empty to full, rounded up to whole nanoseconds; of months, the mean time. */
    public Duration timeToFull() {
        return Duration.ofNanos(nanosToFull(rate, capacity, refill));
    }

    /** Returns the largest {@code long} if the time is longer. */
    private static long nanosToFull(Rate rate, long capacity, Refill refill) {
        long period = rate.period().toNanos();
        if (refill != Refill.GREEDY) {
            return product((capacity - 1) / rate.tokens() + 1, period);
        }
        long product = product(capacity, period);
        return product < Long.MAX_VALUE
                ? (product - 1) / rate.tokens() + 1
                : BigInteger.valueOf(capacity)
                                .multiply(BigInteger.valueOf(period))
                                .subtract(BigInteger.ONE)
                                .divide(BigInteger.valueOf(rate.tokens()))
                                .min(BigInteger.valueOf(Long.MAX_VALUE - 1))
                                .longValueExact()
                        + 1;
    }

    /** Returns the product of positive numbers, or the largest {@code long} if it is larger. */
    private static long product(long a, long b) {
        return Math.multiplyHigh(a, b) == 0 && a * b > 0 ? a * b : Long.MAX_VALUE;
    }

    /** Returns the spec in words: {@code 600/1m, capacity 800}. */
    @Override
    public String toString() {
        return rate + ", capacity " + capacity
                + switch (refill) {
                    case GREEDY -> "";
                    case INTERVAL -> ", refilled at intervals";
                    case CALENDAR -> ", refilled by the calendar of " + (zone.equals(ZoneOffset.UTC) ? "UTC" : zone);
                };
    }
}
