package io.ratelimit;

import java.math.BigInteger;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** The unit in which a bucket of one spec counts time and tokens alike: the tick. Immutable. */
final class TickScale {
    /*
     * What a tick is. The simplest unit is the nanosecond: a token is then worth period / tokens nanoseconds. At
     * 7000/1m that is no whole number, so each take would round, and the errors add up. The tick is chosen instead to make
     * a clock step and a token both whole numbers of it; taking, refilling and giving back then round nothing. A clock
     * step is 1 ns, else 1 µs, or the period for interval refill. With n tokens in d clock steps, reduced, a step is n
     * ticks and a token is d ticks. At 600/1m that is 1 tick a nanosecond and 100,000,000 a token; at 7000/1m it is 7
     * and 60,000,000.
     *
     * A long must hold more than ten years of ticks, which bounds the ticks of a step. A rate that needs finer ticks,
     * such as 30000001/1d, is rounded down, by less than 1/10,000, to one that doesn't.
     *
     * How specs with interval refill convert. A bucket that was drained just before its batch comes has waited for
     * nearly a whole batch. If another spec granted the tokens of this wait and then the batch came too, the rates of
     * the two specs would add up. So tokens are compared at one moment as if all came one by one: a bucket is worth the
     * tokens in it plus the part of the next batch that the time since the last batch has earned. A conversion keeps
     * this worth, up to the new capacity. To greedy refill the earned part becomes tokens. To interval refill the
     * tokens are kept, and the part of the next batch that would count as earned already is taken off that batch: the
     * clock of the bucket is ahead by so many ticks until then (the advance). At 10/1m and half a minute after a batch,
     * an empty bucket is worth 5 tokens. Converted to greedy refill, the bucket has these 5. Converted back, the bucket
     * has 5, and the next batch brings 5.
     *
     * Why a token in batches isn't one tick. It could be, since a batch has whole tokens. But the earned part of a
     * batch has a fraction. If each conversion rounded it down, specs that take turns at each call would lose a third
     * of the tokens, and a bucket that is one tick short of 60 tokens grants only 59. So a token is 2^20 ticks, and the
     * time since the last batch counts in 2^20 parts of the period (the parts). At the same part of the same period,
     * two specs have both earned whole ticks, and a conversion is exact. Higher rates have fewer ticks, so that a tick
     * is still less than a nanosecond's refill. Between different periods a part that has begun counts as still to come
     * for the old spec, and as passed for the new one. Otherwise calls that hit the ends of the parts of both periods
     * would get both rates.
     *
     * Calendar refill is interval refill on a clock on which all days, weeks or months have one length (CalendarClock).
     */

    /** 2^63 ticks at 24 a nanosecond last twelve years: a bucket may be ten years from full, or idle for that long. */
    private static final long MAX_TICKS_PER_NANOSECOND = 24;

    private static final long MICROSECOND = 1_000;

    /** The maximum number of ticks of a token that comes in a batch. */
    private static final long MAX_PER_BATCHED_TOKEN = 1L << 20;

    /** A clock that stands still, so that a calendar depends only on the moments that callers pass to it. */
    private static final TimeSource EPOCH = new TimeSource() {
        @Override
        public long nanoTime() {
            return 0;
        }

        @Override
        public long wallNanos() {
            return 0;
        }
    };

    final BucketSpec spec;
    private final Rate rate;
    private final long start;
    final long stepNanos;
    final long perStep;
    final long perToken;
    final long capacity;
    final long full;
    private final long nanosToFull;
    final long maxDebt;
    private final @Nullable WallCalendar calendar;
    private final TickScale base;
    private final long advance;
    private final long advanceEnd;

    private TickScale(
            BucketSpec spec,
            Rate rate,
            long nanos,
            long stepNanos,
            long perStep,
            long perToken,
            @Nullable WallCalendar calendar) {
        this.spec = spec;
        this.rate = rate;
        this.start = nanos - Math.floorMod(nanos, stepNanos);
        this.stepNanos = stepNanos;
        this.perStep = perStep;
        this.perToken = perToken;
        this.capacity = spec.capacity();
        this.full = capacity * perToken;
        this.base = this;
        this.advance = 0;
        this.advanceEnd = start;
        this.calendar = calendar;
        this.nanosToFull = stepsOf(full) * stepNanos;
        this.maxDebt = ThrottlePolicy.LONGEST_WAIT.toNanos() / stepNanos * perStep;
    }

    /** Creates a scale whose clock is ahead by so many ticks until a moment. */
    private TickScale(TickScale base, long advance, long advanceEnd) {
        this.spec = base.spec;
        this.rate = base.rate;
        this.start = base.start;
        this.stepNanos = base.stepNanos;
        this.perStep = base.perStep;
        this.perToken = base.perToken;
        this.capacity = base.capacity;
        this.full = base.full;
        this.nanosToFull = base.nanosToFull;
        this.maxDebt = base.maxDebt;
        this.calendar = base.calendar;
        this.base = base;
        this.advance = advance;
        this.advanceEnd = advanceEnd;
    }

    /**
     * Returns the scale of a spec, counted from the clock step of a moment: a clock may start anywhere and wrap around.
     */
    static TickScale of(BucketSpec spec, long nanos, TimeSource time) {
        if (spec.refill() != BucketSpec.Refill.CALENDAR) {
            return of(spec, nanos);
        }
        WallCalendar calendar = new WallCalendar(CalendarClock.of(spec), time);
        return ofBatches(spec, calendar.at(nanos), calendar.periodNanos(), calendar);
    }

    /** Returns the scale of a spec for moments since 1970-01-01T00:00Z, the same in every process. */
    static TickScale ofEpoch(BucketSpec spec) {
        return of(spec, 0, EPOCH);
    }

    private static TickScale ofBatches(BucketSpec spec, long clock, long stepNanos, @Nullable WallCalendar calendar) {
        long tokens = spec.rate().tokens();
        long maxPerToken = Math.min(MAX_TICKS_PER_NANOSECOND * stepNanos / tokens, MAX_PER_BATCHED_TOKEN);
        long perToken = Long.highestOneBit(maxPerToken);
        return new TickScale(spec, spec.rate(), clock, stepNanos, tokens * perToken, perToken, calendar);
    }

    /** Returns the scale of a spec without a calendar. */
    static TickScale of(BucketSpec spec, long nanos) {
        long tokens = spec.rate().tokens();
        long periodNanos = spec.rate().period().toNanos();
        if (spec.refill() == BucketSpec.Refill.INTERVAL) {
            return ofBatches(spec, nanos, periodNanos, null);
        }
        long common =
                BigInteger.valueOf(tokens).gcd(BigInteger.valueOf(periodNanos)).longValueExact();
        if (tokens / common <= MAX_TICKS_PER_NANOSECOND) {
            return new TickScale(spec, spec.rate(), nanos, 1, tokens / common, periodNanos / common, null);
        }
        return ofMicroseconds(spec, nanos, tokens, periodNanos);
    }

    private static TickScale ofMicroseconds(BucketSpec spec, long nanos, long tokens, long periodNanos) {
        BigInteger perMicrosecond = BigInteger.valueOf(tokens).multiply(BigInteger.valueOf(MICROSECOND));
        BigInteger common = perMicrosecond.gcd(BigInteger.valueOf(periodNanos));
        BigInteger n = perMicrosecond.divide(common);
        BigInteger d = BigInteger.valueOf(periodNanos).divide(common);
        long maxPerStep = MAX_TICKS_PER_NANOSECOND * MICROSECOND;
        if (n.compareTo(BigInteger.valueOf(maxPerStep)) <= 0) {
            return new TickScale(spec, spec.rate(), nanos, MICROSECOND, n.longValueExact(), d.longValueExact(), null);
        }
        return rounded(spec, nanos, n, d, maxPerStep);
    }

    /**
     * Returns the scale of a rate just below n/d tokens a microsecond, with the most ticks a token that the bound
     * allows. The step loses less than one tick of more than 14,000, since a rate is at most 10,000 tokens a
     * microsecond.
     */
    private static TickScale rounded(BucketSpec spec, long nanos, BigInteger n, BigInteger d, long maxPerStep) {
        long perToken = d.multiply(BigInteger.valueOf(maxPerStep)).divide(n).longValueExact();
        long perStep = n.multiply(BigInteger.valueOf(perToken)).divide(d).longValueExact();
        Rate rate = new Rate(perStep, Duration.ofNanos(MICROSECOND * perToken));
        return new TickScale(spec, rate, nanos, MICROSECOND, perStep, perToken, null);
    }

    BucketSpec spec() {
        return spec;
    }

    /** Returns the effective rate: the spec's own unless it was rounded down. */
    Rate rate() {
        return rate;
    }

    /** Returns whether tokens may come back faster than by another scale. Scales of coarser steps aren't compared. */
    boolean isFasterThan(TickScale other) {
        return stepNanos > 1 || other.stepNanos > 1 || perStep * other.perToken > other.perStep * perToken;
    }

    boolean fits(long tokens) {
        return tokens <= capacity;
    }

    boolean fits(long tokens, long leave) {
        return tokens <= capacity - leave;
    }

    /** Returns the ticks from empty to full. */
    long full() {
        return full;
    }

    /** Returns the longest time from empty to full. */
    long nanosToFull() {
        return nanosToFull;
    }

    /** Returns the ticks of this many tokens, at most those of a full bucket. */
    long price(long tokens) {
        return tokens >= capacity ? full : tokens * perToken;
    }

    /**
     * Returns the ticks missing after tokens were taken from a bucket even if it had too few. The debt is at most
     * what comes back in 365 days; the rest of the tokens is not taken.
     */
    long missingAfterDebt(long missing, long tokens) {
        long room = Math.max(full + maxDebt - missing, 0);
        return missing + (tokens > room / perToken ? room : tokens * perToken);
    }

    /** Returns the tick at a moment. It may wrap around, so ticks are compared by subtraction. */
    long at(long nanos) {
        if (stepNanos == 1) {
            long passed = nanos - start;
            return perStep == 1 ? passed : passed * perStep;
        }
        return atClock(clock(nanos));
    }

    /** Returns the moment at which a tick began; reads the clock if the step of this scale is coarser than a nanosecond. */
    long nanosAt(long tick, TimeSource time) {
        return stepNanos > 1 ? time.nanoTime() : start + (perStep == 1 ? tick : tick / perStep);
    }

    long stepAt(long nanos) {
        return stepNanos == 1 ? nanos : nanos - Math.floorMod(nanos - start, stepNanos);
    }

    /** Returns the time of the clock that the steps are counted by. */
    long clock(long nanos) {
        return calendar == null ? nanos : calendar.at(nanos);
    }

    private long atClock(long clock) {
        long passed = clock - start;
        long steps = stepNanos == MICROSECOND ? Math.floorDiv(passed, MICROSECOND) : Math.floorDiv(passed, stepNanos);
        return steps * perStep + advanceAt(clock);
    }

    /** Returns the ticks by which the next step after a time of the clock is shorter than others. */
    long advanceAt(long clock) {
        return advance == 0 || clock - advanceEnd >= 0 ? 0 : advance;
    }

    /** Returns the scale without an advance. */
    TickScale base() {
        return base;
    }

    /** Returns this scale with the clock ahead by so many ticks until the step after a moment. */
    TickScale advanced(long ticks, long nanos) {
        long clock = clock(nanos);
        return withAdvance(ticks, clock - sinceStep(clock) + stepNanos);
    }

    /** Returns this scale with the clock ahead by so many ticks until a time of the clock. */
    TickScale withAdvance(long ticks, long endClock) {
        return ticks == 0 ? base : new TickScale(base, ticks, endClock);
    }

    /** Returns the ticks by which the clock is ahead at a moment. */
    long advanceAtNanos(long nanos) {
        return advanceAt(clock(nanos));
    }

    /** Returns the time of the clock until which it is ahead. */
    long advanceEnd() {
        return advanceEnd;
    }

    /** Returns the length of a clock step in microseconds, at least one. */
    long stepMicros() {
        return Math.max(stepNanos / 1_000, 1);
    }

    /** Returns the time since the last batch, by the clock; zero for greedy refill. */
    long sinceStep(long clock) {
        return spec.refill() == BucketSpec.Refill.GREEDY ? 0 : Math.floorMod(clock - start, stepNanos);
    }

    /** Returns the tick of the first clock step that isn't before a moment. */
    long atOrAfter(long nanos) {
        return stepNanos == 1 ? at(nanos) : atClock(clock(nanos) + stepNanos - 1);
    }

    /**
     * Returns the time from a moment until this many ticks have passed. Exact, since the clock moves by whole steps.
     */
    long nanosUntil(long ticks, long nanos) {
        if (ticks <= 0) {
            return 0;
        }
        if (calendar != null) {
            return calendar.nanosUntil(stepsOf(ticks + advanceAt(clock(nanos))), nanos);
        }
        long steps = stepsOf(ticks + advanceAt(nanos));
        return stepNanos == 1 ? steps : steps * stepNanos - Math.floorMod(nanos - start, stepNanos);
    }

    private long stepsOf(long ticks) {
        return perStep == 1 ? ticks : (ticks - 1) / perStep + 1;
    }

    /** Returns the most nanoseconds that can have passed since a tick; zero if the tick is still to come. */
    long nanosSince(long tick, long nanos) {
        long behind = at(nanos) - tick;
        return behind < 0 ? 0 : ((behind + perStep - 1) / perStep) * stepNanos + stepNanos - 1;
    }

    /** Returns the whole tokens in a bucket that is missing this many ticks. */
    long tokensLeft(long missing) {
        return Math.max(full - missing, 0) / perToken;
    }

    /** Returns the time until a bucket that is missing this many ticks has one more whole token. */
    long nanosUntilNextToken(long missing, long nanos) {
        long debt = Math.max(missing - full, 0);
        return nanosUntil(missing <= 0 ? 0 : debt + (missing - debt - 1) % perToken + 1, nanos);
    }

    /** Returns the time until there is one more whole token, if so many tokens don't count. */
    long nanosUntilNextToken(long missing, long leave, long nanos) {
        return leave <= tokensLeft(missing)
                ? nanosUntilNextToken(missing, nanos)
                : nanosUntil(missing - full + price(leave + 1), nanos);
    }

    /**
     * Returns the most ticks that a spec's rate can bring in this time. Refill in batches may bring one more batch. The
     * periods of a calendar are longer than four fifths of their mean.
     */
    long maxRefill(long nanos, BucketSpec spec) {
        long period = spec.rate().period().toNanos();
        long longest = spec.refill() == BucketSpec.Refill.CALENDAR ? nanos + nanos / 4 : nanos;
        boolean batches = spec.refill() != BucketSpec.Refill.GREEDY;
        long time = batches && longest % period != 0 ? (longest / period + 1) * period : longest;
        return BigInteger.valueOf(time)
                .multiply(BigInteger.valueOf(spec.rate().tokens()))
                .multiply(BigInteger.valueOf(perToken))
                .divide(BigInteger.valueOf(period))
                .add(BigInteger.valueOf(Math.min(nanos, 1)))
                .min(BigInteger.valueOf(full))
                .longValueExact();
    }
}
