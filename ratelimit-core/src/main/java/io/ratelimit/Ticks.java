package io.ratelimit;

import java.math.BigInteger;
import java.time.Duration;

/**
 * The unit in which a bucket of one spec counts time and tokens alike.
 *
 * <p>A clock step (1 ns, else 1 µs, for interval refill the period) and a token are both whole numbers of ticks, so
 * taking, refilling and giving back round nothing. With {@code n} tokens in {@code d} clock steps, reduced, the
 * smallest such tick makes a step {@code n} ticks and a token {@code d}. At 600/1m that is 1 tick a nanosecond and
 * 100,000,000 a token; at 7000/1m it is 7 and 60,000,000.
 *
 * <p>A long must hold ten years and more of ticks, which bounds the ticks of a step. A rate that needs finer ones, such
 * as 30000001/1d, is rounded down, by less than 1/10,000, to one that does not.
 */
final class Ticks {

    /** 2^63 ticks at 24 a nanosecond last for twelve years: a bucket may be ten years from full, or that long idle. */
    private static final long MOST_PER_NANOSECOND = 24;

    private static final long MICROSECOND = 1_000;

    private final BucketSpec spec;
    private final Rate rate;
    private final long origin;
    private final long stepNanos;
    private final long perStep;
    private final long perToken;
    private final long capacity;
    private final long full;
    private final long nanosToFull;

    private Ticks(BucketSpec spec, Rate rate, long nanos, long stepNanos, long perStep, long perToken) {
        this.spec = spec;
        this.rate = rate;
        this.origin = nanos - Math.floorMod(nanos, stepNanos);
        this.stepNanos = stepNanos;
        this.perStep = perStep;
        this.perToken = perToken;
        this.capacity = spec.capacity();
        this.full = capacity * perToken;
        this.nanosToFull = nanosUntil(full, origin);
    }

    /** The ticks of a spec, counted from the clock step that a moment is in: a clock may start anywhere and wrap around. */
    static Ticks of(BucketSpec spec, long nanos) {
        long tokens = spec.rate().tokens();
        long periodNanos = spec.rate().period().toNanos();
        if (spec.refill() == BucketSpec.Refill.INTERVAL) {
            return new Ticks(spec, spec.rate(), nanos, periodNanos, tokens, 1);
        }
        long common = gcd(tokens, periodNanos);
        if (tokens / common <= MOST_PER_NANOSECOND) {
            return new Ticks(spec, spec.rate(), nanos, 1, tokens / common, periodNanos / common);
        }
        return ofMicroseconds(spec, nanos, tokens, periodNanos);
    }

    private static Ticks ofMicroseconds(BucketSpec spec, long nanos, long tokens, long periodNanos) {
        BigInteger perMicrosecond = BigInteger.valueOf(tokens).multiply(BigInteger.valueOf(MICROSECOND));
        BigInteger common = perMicrosecond.gcd(BigInteger.valueOf(periodNanos));
        BigInteger n = perMicrosecond.divide(common);
        BigInteger d = BigInteger.valueOf(periodNanos).divide(common);
        long most = MOST_PER_NANOSECOND * MICROSECOND;
        if (n.compareTo(BigInteger.valueOf(most)) <= 0) {
            return new Ticks(spec, spec.rate(), nanos, MICROSECOND, n.longValueExact(), d.longValueExact());
        }
        return rounded(spec, nanos, n, d, most);
    }

    /**
     * A rate just below n/d tokens a microsecond: the longest token whose step still has room. The step loses less than
     * one tick, and has more than 14,000 of them, since a rate is at most 10,000 tokens a microsecond.
     */
    private static Ticks rounded(BucketSpec spec, long nanos, BigInteger n, BigInteger d, long most) {
        long perToken = d.multiply(BigInteger.valueOf(most)).divide(n).longValueExact();
        long perStep = n.multiply(BigInteger.valueOf(perToken)).divide(d).longValueExact();
        Rate rate = new Rate(perStep, Duration.ofNanos(MICROSECOND * perToken));
        return new Ticks(spec, rate, nanos, MICROSECOND, perStep, perToken);
    }

    private static long gcd(long a, long b) {
        return BigInteger.valueOf(a).gcd(BigInteger.valueOf(b)).longValueExact();
    }

    BucketSpec spec() {
        return spec;
    }

    /** Whether a full bucket holds so many tokens. */
    boolean fits(long tokens) {
        return tokens <= capacity;
    }

    /** The ticks from empty to full. */
    long full() {
        return full;
    }

    /** The ticks of so many tokens, at most those of a full bucket. */
    long of(long tokens) {
        return tokens >= capacity ? full : tokens * perToken;
    }

    /** The whole tokens in so many ticks. */
    long tokens(long ticks) {
        return Math.floorDiv(ticks, perToken);
    }

    /** The tick at a moment; it may wrap around, so ticks are compared by subtraction. */
    long at(long nanos) {
        long passed = nanos - origin;
        if (stepNanos == 1) {
            return perStep == 1 ? passed : passed * perStep;
        }
        return (stepNanos == MICROSECOND ? Math.floorDiv(passed, MICROSECOND) : Math.floorDiv(passed, stepNanos))
                * perStep;
    }

    /** The tick of the first clock step that is not before a moment. */
    long notBefore(long nanos) {
        return at(nanos + stepNanos - 1);
    }

    /** The nanoseconds from a moment until so many ticks have passed: exact, since the clock moves by whole steps. */
    long nanosUntil(long ticks, long nanos) {
        if (ticks <= 0) {
            return 0;
        }
        long steps = perStep == 1 ? ticks : (ticks - 1) / perStep + 1;
        return stepNanos == 1 ? steps : steps * stepNanos - Math.floorMod(nanos - origin, stepNanos);
    }

    /** The ticks from a bucket with so many of them missing until it has one more whole token. */
    long untilNextToken(long missing) {
        long owed = Math.max(missing - full, 0);
        return missing <= 0 ? 0 : owed + (missing - owed - 1) % perToken + 1;
    }

    /** What a bucket of another spec, with so many of its ticks missing, is missing here: its tokens stay. */
    long missingFrom(Ticks other, long missing) {
        BigInteger there = BigInteger.valueOf(other.full - missing);
        long here = there.multiply(BigInteger.valueOf(perToken))
                .divide(BigInteger.valueOf(other.perToken))
                .min(BigInteger.valueOf(full))
                .longValueExact();
        return full - here;
    }

    /** The rate that results: the spec's own, but where it was rounded down. */
    Rate rate() {
        return rate;
    }

    /** The nanoseconds that an empty bucket takes at most until it is full. */
    long nanosToFull() {
        return nanosToFull;
    }
}
