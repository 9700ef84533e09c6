package io.ratelimit;

import static io.ratelimit.Check.check;
import static io.ratelimit.Check.invalid;

import java.math.BigInteger;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;

/**
 * The capacity and the refill rate of a token bucket, and how many calls may be in flight at a time. A new bucket is full.
 * From empty to full it may take at most ten years. {@link #inFlight(int)} creates a spec without a rate.
 *
 * @param rate the speed at which tokens come back
 * @param capacity the tokens of a full bucket, and so the largest burst; from 1 to 10^12
 * @param refill whether tokens come back one by one or a period's worth at a time
 * @param zone the zone of the days, weeks or months of calendar refill; UTC for any other refill
 * @param inFlight the calls of a key that may run at a time, at most 1,000,000; 0 for any number. Only {@link Throttlers}
 *     count calls in flight
 */
public record BucketSpec(Rate rate, long capacity, Refill refill, ZoneId zone, int inFlight) {

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
    static final int MAX_IN_FLIGHT = 1_000_000;

    /**
     * Marks a spec without a rate by its identity: an equal rate that a user writes is a rate. It is more than any call
     * uses.
     */
    private static final Rate NO_RATE = new Rate(10_000, Duration.ofNanos(1_000));

    /**
     * @throws IllegalArgumentException if the capacity, the time from empty to full or the number of calls in flight is
     *     outside its range, or the calendar has no such period
     */
    public BucketSpec {
        zone = refill == Refill.CALENDAR ? zone : ZoneOffset.UTC;
        check(
                refill != Refill.CALENDAR || CalendarClock.hasPeriodOf(rate),
                "the rate of calendar refill",
                "tokens a day, a week or a month, such as 10000/month",
                rate);
        check(capacity >= 1 && capacity <= MAX_CAPACITY, "capacity", "between 1 and 1,000,000,000,000", capacity);
        if (nanosToFull(rate, capacity, refill) > MAX_NANOS_TO_FULL) {
            throw invalid(
                    "the time from empty to full",
                    "at most ten years",
                    capacity + " tokens at " + rate + ": raise the rate or lower the capacity");
        }
        check(inFlight >= 0 && inFlight <= MAX_IN_FLIGHT, "in-flight", "between 1 and 1,000,000", inFlight);
    }

    /**
     * Creates a spec without a limit of the calls in flight.
     *
     * @throws IllegalArgumentException as the other constructor
     */
    public BucketSpec(Rate rate, long capacity, Refill refill, ZoneId zone) {
        this(rate, capacity, refill, zone, 0);
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
     * Returns a spec without a rate, which only limits how many calls of a key are in flight.
     *
     * @param calls the calls that may run at a time, from 1 to 1,000,000
     * @throws IllegalArgumentException if the number is outside its range
     */
    public static BucketSpec inFlight(int calls) {
        return new BucketSpec(NO_RATE, MAX_CAPACITY, Refill.GREEDY).withInFlight(calls);
    }

    /**
     * Returns this spec with a limit of the calls in flight.
     *
     * @param calls the calls that may run at a time, from 1 to 1,000,000
     * @throws IllegalArgumentException if the number is outside its range
     */
    public BucketSpec withInFlight(int calls) {
        check(calls >= 1, "in-flight", "between 1 and 1,000,000", calls);
        return new BucketSpec(rate, capacity, refill, zone, calls);
    }

    /** Returns whether the spec has a rate and a capacity, beside a limit of the calls in flight or without one. */
    @SuppressWarnings("ReferenceEquality")
    public boolean hasRate() {
        return inFlight == 0 || rate != NO_RATE || capacity != MAX_CAPACITY;
    }

    /**
     * Returns this spec with what it doesn't have from another one: the rate and the capacity with their refill, or the
     * limit of the calls in flight.
     */
    public BucketSpec orElse(BucketSpec other) {
        if (!hasRate()) {
            return other.withInFlight(inFlight);
        }
        return inFlight == 0 && other.inFlight > 0 ? withInFlight(other.inFlight) : this;
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
        return new BucketSpec(rate, capacity, refill, zone, inFlight);
    }

    /**
     * Returns this spec with calendar refill in a zone.
     *
     * @throws IllegalArgumentException if the calendar has no such period as the rate
     */
    public BucketSpec withCalendar(ZoneId zone) {
        return new BucketSpec(rate, capacity, Refill.CALENDAR, zone, inFlight);
    }

    /**
     * Returns a spec with another rate and capacity, and the same manner of refill.
     *
     * @throws IllegalArgumentException if the capacity or the time from empty to full is then outside its range, or the
     *     calendar has no such period
     */
    public BucketSpec with(Rate rate, long capacity) {
        return new BucketSpec(rate, capacity, refill, zone, inFlight);
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

    /** Returns the spec in words: {@code 600/1m, capacity 800, 4 in flight}. */
    @Override
    public String toString() {
        String calls = inFlight + " in flight";
        return hasRate() ? bucket() + (inFlight == 0 ? "" : ", " + calls) : calls;
    }

    private String bucket() {
        return rate + ", capacity " + capacity
                + switch (refill) {
                    case GREEDY -> "";
                    case INTERVAL -> ", refilled at intervals";
                    case CALENDAR -> ", refilled by the calendar of " + (zone.equals(ZoneOffset.UTC) ? "UTC" : zone);
                };
    }
}
