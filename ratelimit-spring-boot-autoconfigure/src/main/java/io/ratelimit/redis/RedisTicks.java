package io.ratelimit.redis;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import java.math.BigInteger;
import java.time.Duration;

/**
 * The unit in which a bucket in Redis counts time and tokens alike, so that a step of the clock and a token are whole
 * numbers of ticks. It is also what a spec looks like there: "n/d/c/s".
 *
 * <p>Lua counts exactly only up to 2^53. A full bucket and a wait of an hour take at most half of {@link #MOST} each.
 * Where a microsecond and a token are whole numbers of ticks within that, the rate is exact; otherwise it is rounded down
 * by less than 1/10,000. A bucket that takes weeks to fill up, and whose rate fits no microsecond, counts by the
 * millisecond.
 *
 * @param perStep n: the ticks of a step of the clock
 * @param perToken d: the ticks of a token
 * @param capacity c: the tokens of a full bucket
 * @param stepMicros s: the microseconds of a step; with interval refill those of the period
 */
record RedisTicks(long perStep, long perToken, long capacity, long stepMicros) {

    /** The most ticks that anything has: below 2^53, with room for sums. */
    static final long MOST = 8_000_000_000_000_000L;

    private static final long LONGEST_WAIT_MICROS = Duration.ofDays(365).toNanos() / 1_000;
    private static final long LONGEST_PERIOD_MICROS = Duration.ofDays(365).toNanos() / 1_000;

    private static final long HALF = MOST / 2;
    private static final long HOUR_MICROS = Duration.ofHours(1).toNanos() / 1_000;
    private static final long[] STEPS = {1, 1_000};

    /** The fewest ticks of a step for which cutting off the fraction of one loses less than 1/10,000. */
    private static final long PRECISE = 10_000;

    /** A batch that is larger than this fills any bucket, and pays any debt that a bucket of the domain can have. */
    private static final long LARGEST_BATCH = 1L << 42;

    /** The ticks of a spec. The domain of specs is such that there are always some. */
    static RedisTicks of(BucketSpec spec) {
        long periodMicros = spec.rate().period().toNanos() / 1_000;
        if (spec.refill() == Refill.INTERVAL) {
            return new RedisTicks(Math.min(spec.rate().tokens(), LARGEST_BATCH), 1, spec.capacity(), periodMicros);
        }
        for (long step : STEPS) {
            BigInteger perStep = BigInteger.valueOf(spec.rate().tokens()).multiply(BigInteger.valueOf(step));
            RedisTicks ticks = of(perStep, BigInteger.valueOf(periodMicros), spec.capacity(), step);
            if (ticks.isOfRate(spec.rate()) || ticks.perStep >= PRECISE) {
                return ticks;
            }
        }
        throw new IllegalArgumentException("'" + spec + "' is too slow to be counted in Redis");
    }

    /** The finest ticks that are exact; or else the rate just below with the longest token that there is room for. */
    private static RedisTicks of(BigInteger tokens, BigInteger steps, long capacity, long stepMicros) {
        BigInteger common = tokens.gcd(steps);
        BigInteger n = tokens.divide(common);
        BigInteger d = steps.divide(common);
        BigInteger mostPerStep = BigInteger.valueOf(HALF / (HOUR_MICROS / stepMicros));
        BigInteger perToken = d.min(BigInteger.valueOf(HALF / capacity))
                .min(d.multiply(mostPerStep).divide(n));
        BigInteger perStep = n.multiply(perToken).divide(d);
        return new RedisTicks(perStep.longValueExact(), perToken.longValueExact(), capacity, stepMicros);
    }

    private boolean isOfRate(Rate rate) {
        BigInteger ours = product(perStep, rate.period().toNanos() / 1_000);
        return ours.equals(product(rate.tokens(), perToken).multiply(BigInteger.valueOf(stepMicros)));
    }

    private static BigInteger product(long a, long b) {
        return BigInteger.valueOf(a).multiply(BigInteger.valueOf(b));
    }

    /** Reads what {@link #name} wrote. */
    static RedisTicks named(String name) {
        String[] numbers = name.split("/", -1);
        if (numbers.length != 4) {
            throw new NumberFormatException("'" + name + "' is no spec");
        }
        RedisTicks ticks =
                new RedisTicks(number(numbers[0]), number(numbers[1]), number(numbers[2]), number(numbers[3]));
        if ((double) ticks.capacity * ticks.perToken > MOST) {
            throw new NumberFormatException("'" + name + "' is no spec");
        }
        return ticks;
    }

    private static long number(String digits) {
        long number = Long.parseLong(digits);
        if (number < 1 || number > MOST) {
            throw new NumberFormatException("'" + digits + "' is in no spec");
        }
        return number;
    }

    /** The spec as it is written beside a bucket. */
    String name() {
        return perStep + "/" + perToken + "/" + capacity + "/" + stepMicros;
    }

    /** The rate that results of a spec's: the spec's own, but where it was rounded down. */
    Rate rate(BucketSpec spec) {
        return spec.refill() == Refill.INTERVAL || isOfRate(spec.rate()) ? spec.rate() : rounded();
    }

    /** As a rate can be written: the period of a token's ticks may be more than 365 days. */
    private Rate rounded() {
        BigInteger microsOfSteps = product(perToken, stepMicros);
        BigInteger longest = BigInteger.valueOf(LONGEST_PERIOD_MICROS);
        BigInteger n = BigInteger.valueOf(perStep);
        BigInteger tokens = n.min(longest.multiply(n).divide(microsOfSteps));
        BigInteger[] period = tokens.multiply(microsOfSteps).divideAndRemainder(n);
        long micros = period[0].longValueExact() + period[1].signum();
        return new Rate(tokens.longValueExact(), Duration.ofNanos(1_000 * micros));
    }

    /** The ticks of a full bucket. */
    long full() {
        return capacity * perToken;
    }

    /** Whether a full bucket holds so many tokens. */
    boolean fits(long tokens) {
        return tokens <= capacity;
    }

    /** The ticks of so many tokens, at most those of a full bucket. */
    long of(long tokens) {
        return Math.min(tokens, capacity) * perToken;
    }

    /** The whole tokens in so many ticks. */
    long tokens(long ticks) {
        return Math.floorDiv(ticks, perToken);
    }

    /** The step that a moment is in. */
    long step(long micros) {
        return micros / stepMicros;
    }

    /** The ticks of so many steps, at most {@link #MOST}. */
    long ofSteps(long steps) {
        return steps > MOST / perStep ? MOST : steps * perStep;
    }

    /** The most ticks that may be missing after a take at a moment, by a call that may wait so long. */
    long limit(long waitMicros, long micros) {
        long ahead = waitMicros == 0 ? 0 : ofSteps((waitMicros + micros % stepMicros) / stepMicros);
        return Math.min(full() + ahead, MOST);
    }

    /** The microseconds from a moment until so many ticks have passed. */
    long microsUntil(long ticks, long micros) {
        if (ticks <= 0) {
            return 0;
        }
        long steps = (ticks - 1) / perStep + 1;
        return steps > MOST / stepMicros ? MOST : steps * stepMicros - micros % stepMicros;
    }

    /** The nanoseconds from a moment until so many ticks have passed. */
    long nanosUntil(long ticks, long micros) {
        return microsUntil(ticks, micros) * 1_000;
    }

    /** The ticks from a bucket with so many of them missing until it has one more whole token. */
    long untilNextToken(long missing) {
        long owed = Math.max(missing - full(), 0);
        return missing <= 0 ? 0 : owed + (missing - owed - 1) % perToken + 1;
    }

    /** The longest wait for which any bucket of the spec can give tokens ahead; at least an hour. */
    Duration longestWait() {
        long micros = Math.min((MOST - full()) / perStep, LONGEST_WAIT_MICROS / stepMicros) * stepMicros;
        return Duration.ofNanos(1_000 * micros);
    }
}
