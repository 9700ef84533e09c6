package io.ratelimit.redis;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.CalendarClock;
import io.ratelimit.Rate;
import java.math.BigInteger;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The unit of a bucket in Redis for time and tokens alike, the tick: a step of the clock and a token are whole numbers of
 * ticks. It is also the form of a spec in Redis: "n/d/c/s".
 *
 * <p>Lua counts exactly only up to 2^53. A full bucket and a wait of an hour have at most half of {@link #MAX_TICKS} each. If
 * a microsecond and a token can be whole numbers of ticks within these limits, the rate is exact. Otherwise it is rounded
 * down by less than 1/10,000. A bucket that needs weeks to fill, and whose rate fits no microsecond, counts milliseconds.
 *
 * <p>A token that comes in a batch is a power of two ticks, so that conversions between specs with batches are exact.
 *
 * @param perStep n: the ticks of a step of the clock
 * @param perToken d: the ticks of a token
 * @param capacity c: the tokens of a full bucket
 * @param stepMicros s: the microseconds of a step; with interval refill those of the period, with calendar refill those of the
 *     period on the {@link CalendarClock}
 */
record RedisTickScale(long perStep, long perToken, long capacity, long stepMicros) {

    /** The largest number of ticks: below 2^53, with room for sums. */
    static final long MAX_TICKS = 8_000_000_000_000_000L;

    private static final long MAX_WAIT_MICROS = Duration.ofDays(365).toNanos() / 1_000;
    private static final long MAX_PERIOD_MICROS = Duration.ofDays(365).toNanos() / 1_000;

    private static final long HALF = MAX_TICKS / 2;
    private static final long HOUR_MICROS = Duration.ofHours(1).toNanos() / 1_000;
    private static final long[] STEPS = {1, 1_000};

    /** The minimum ticks of a step for which rounding down loses less than 1/10,000. */
    private static final long PRECISE = 10_000;

    /** The most ticks of a token that comes in a batch. */
    private static final long MAX_PER_BATCHED_TOKEN = 1L << 20;

    /** The full buckets that the ticks of tokens in batches leave room for. */
    private static final long ROOM = 64;

    private static final long DAY_MICROS = 24 * HOUR_MICROS;

    /** A batch of this size fills any bucket and pays any one cost, so larger ones are reduced to it. */
    private static final long MAX_BATCH = 1L << 42;

    /** Returns the scale of a spec. Every valid spec has one. */
    static RedisTickScale of(BucketSpec spec) {
        long periodMicros = spec.rate().period().toNanos() / 1_000;
        if (spec.refill() != Refill.GREEDY) {
            long stepMicros =
                    spec.refill() == Refill.CALENDAR ? CalendarClock.of(spec).periodMicros() : periodMicros;
            return ofBatches(Math.min(spec.rate().tokens(), MAX_BATCH), spec.capacity(), stepMicros);
        }
        for (long step : STEPS) {
            BigInteger perStep = BigInteger.valueOf(spec.rate().tokens()).multiply(BigInteger.valueOf(step));
            RedisTickScale ticks = of(perStep, BigInteger.valueOf(periodMicros), spec.capacity(), step);
            if (ticks.isOfRate(spec.rate()) || ticks.perStep >= PRECISE) {
                return ticks;
            }
        }
        throw new IllegalArgumentException("'" + spec + "' is too slow for Redis");
    }

    /** Returns a scale with room for debts of a day and for many returned tokens, if a token can be more than one tick. */
    private static RedisTickScale ofBatches(long tokens, long capacity, long stepMicros) {
        long batches = Math.max(DAY_MICROS / stepMicros, 1);
        long maxPerBatch = HALF / batches / tokens;
        long maxPerToken = Math.min(Math.min(maxPerBatch, HALF / ROOM / capacity), MAX_PER_BATCHED_TOKEN);
        long perToken = Long.highestOneBit(Math.max(maxPerToken, 1));
        return new RedisTickScale(tokens * perToken, perToken, capacity, stepMicros);
    }

    /** Returns the exact scale with the fewest ticks; otherwise the rate just below, with the largest token there is room for. */
    private static RedisTickScale of(BigInteger tokens, BigInteger steps, long capacity, long stepMicros) {
        BigInteger common = tokens.gcd(steps);
        BigInteger n = tokens.divide(common);
        BigInteger d = steps.divide(common);
        BigInteger maxPerStep = BigInteger.valueOf(HALF / (HOUR_MICROS / stepMicros));
        BigInteger perToken = d.min(BigInteger.valueOf(HALF / capacity))
                .min(d.multiply(maxPerStep).divide(n));
        BigInteger[] perStep = n.multiply(perToken).divideAndRemainder(d);
        BigInteger[] tokensPerStep = perStep[0].divideAndRemainder(perToken);
        return tokensPerStep[1].signum() == 0 // as for a batch
                ? new RedisTickScale(tokensPerStep[0].longValueExact(), 1, capacity, stepMicros)
                : new RedisTickScale(perStep[0].longValueExact(), perToken.longValueExact(), capacity, stepMicros);
    }

    /** Compares two products of 128 bits, as each decision does. */
    private boolean isOfRate(Rate rate) {
        long periodMicros = rate.period().toNanos() / 1_000;
        long microsOfSteps = perToken * stepMicros; // a step has at most 1,000 here
        return perStep * periodMicros == rate.tokens() * microsOfSteps
                && Math.multiplyHigh(perStep, periodMicros) == Math.multiplyHigh(rate.tokens(), microsOfSteps);
    }

    private static BigInteger product(long a, long b) {
        return BigInteger.valueOf(a).multiply(BigInteger.valueOf(b));
    }

    /** Returns the text of the spec in the value of a bucket. */
    String name() {
        return perStep + "/" + perToken + "/" + capacity + "/" + stepMicros;
    }

    /** Returns the effective rate: that of the spec, unless it was rounded down. */
    Rate rate(BucketSpec spec) {
        return spec.refill() != Refill.GREEDY || isOfRate(spec.rate()) ? spec.rate() : rounded();
    }

    /** Returns the rounded rate with a period of at most 365 days, which one token's ticks may exceed. */
    private Rate rounded() {
        BigInteger microsOfSteps = product(perToken, stepMicros);
        BigInteger longest = BigInteger.valueOf(MAX_PERIOD_MICROS);
        BigInteger n = BigInteger.valueOf(perStep);
        BigInteger tokens = n.min(longest.multiply(n).divide(microsOfSteps));
        BigInteger[] period = tokens.multiply(microsOfSteps).divideAndRemainder(n);
        long micros = period[0].longValueExact() + period[1].signum();
        return new Rate(tokens.longValueExact(), Duration.ofNanos(1_000 * micros));
    }

    long full() {
        return capacity * perToken;
    }

    boolean fits(long tokens) {
        return tokens <= capacity;
    }

    /** Returns the ticks of tokens, at most those of a full bucket. */
    long price(long tokens) {
        return Math.min(tokens, capacity) * perToken;
    }

    long tokens(long ticks) {
        return Math.floorDiv(ticks, perToken);
    }

    long step(long micros) {
        return micros / stepMicros;
    }

    /** Returns the ticks of steps, at most {@link #MAX_TICKS}. */
    long ofSteps(long steps) {
        return steps > MAX_TICKS / perStep ? MAX_TICKS : steps * perStep;
    }

    long microsUntil(long ticks, long micros) {
        if (ticks <= 0) {
            return 0;
        }
        long steps = (ticks - 1) / perStep + 1;
        return steps > MAX_TICKS / stepMicros ? MAX_TICKS : steps * stepMicros - micros % stepMicros;
    }

    /** @param calendar the clock of the moment; null for the server's */
    long nanosUntil(long ticks, long micros, @Nullable CalendarClock calendar) {
        return calendar == null || ticks <= 0
                ? microsUntil(ticks, micros) * 1_000
                : calendar.microsUntil((ticks - 1) / perStep + 1, calendar.momentOf(micros)) * 1_000;
    }

    /** Returns the ticks until a bucket with the given missing ticks has one more whole token. */
    long untilNextToken(long missing) {
        long owed = Math.max(missing - full(), 0);
        return missing <= 0 ? 0 : owed + (missing - owed - 1) % perToken + 1;
    }

    /** Returns the longest time by which tokens can be taken ahead; at least an hour. */
    Duration maxWait() {
        long micros = Math.min((MAX_TICKS - full()) / perStep, MAX_WAIT_MICROS / stepMicros) * stepMicros;
        return Duration.ofNanos(1_000 * micros);
    }
}
