package io.ratelimit.demand;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.Rate;
import java.math.BigInteger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * The rates at which a policy's demand is measured: its own times 1/16 to 16. Immutable.
 *
 * <p>The deficit of a key at a rate is the number of tokens missing from a bucket that never denies. Deficits are
 * counted in parts of a token, {@link #perToken}, such that the refill of one clock step is a whole number of parts, or
 * a power of two of one. Sums of them are therefore exact as long as they fit the 53 bits of a double.
 *
 * <p>For greedy refill the clock step is a nanosecond. For interval refill it is the period: a bucket that refills at
 * whole periods gets the same as a greedy one on a clock that moves once a period. A rate whose batch would not be a
 * whole number of tokens has a longer period, by a power of two.
 */
final class RateGrid {

    private static final int MAX_SHIFT = 4;

    static final int SIZE = 2 * MAX_SHIFT + 1;

    private static final long MAX_PERIOD_NANOS = Duration.ofDays(365).toNanos();
    private static final long MAX_TOKENS_PER_NANOSECOND = 10;

    /** The largest capacity of a {@link BucketSpec}. */
    private static final long MAX_CAPACITY = 1_000_000_000_000L;

    private final BucketSpec spec;
    private final List<Rate> rates = new ArrayList<>();
    private final double[] drains = new double[SIZE];
    private final int[] shifts = new int[SIZE];
    private final long stepNanos;
    private final double perToken;
    private final double full;
    private final double largest;
    private final long maxCost;
    private int own;

    RateGrid(BucketSpec spec) {
        this.spec = spec.refill() == Refill.CALENDAR ? spec.withRefill(Refill.GREEDY) : spec;
        long tokens = spec.rate().tokens();
        long periodNanos = spec.rate().period().toNanos();
        boolean interval = spec.refill() == Refill.INTERVAL;
        long common =
                BigInteger.valueOf(tokens).gcd(BigInteger.valueOf(periodNanos)).longValueExact();
        this.stepNanos = interval ? periodNanos : 1;
        this.perToken = interval ? 1 : (double) (periodNanos / common);
        this.full = spec.capacity() * perToken;
        this.largest = MAX_CAPACITY * perToken;
        this.maxCost = Math.min(spec.capacity() << MAX_SHIFT, MAX_CAPACITY);
        for (int shift = -MAX_SHIFT; shift <= MAX_SHIFT; shift++) {
            int halvings = Math.min(Math.max(-shift, 0), Long.numberOfTrailingZeros(tokens));
            int doublings = Math.max(-shift, 0) - halvings;
            long batch = shift >= 0 ? tokens << shift : tokens >> halvings;
            if (isRate(batch, periodNanos << doublings)) {
                own = shift == 0 ? rates.size() : own;
                drains[rates.size()] = interval ? batch : Math.scalb((double) (tokens / common), shift);
                shifts[rates.size()] = interval ? doublings : 0;
                rates.add(new Rate(batch, Duration.ofNanos(periodNanos << doublings)));
            }
        }
    }

    private static boolean isRate(long tokens, long periodNanos) {
        return periodNanos <= MAX_PERIOD_NANOS && tokens <= MAX_TOKENS_PER_NANOSECOND * periodNanos;
    }

    BucketSpec spec() {
        return spec;
    }

    List<Rate> rates() {
        return List.copyOf(rates);
    }

    int size() {
        return rates.size();
    }

    /** Returns the index of the spec's own rate. */
    int own() {
        return own;
    }

    double perToken() {
        return perToken;
    }

    /** Returns the parts in a full bucket under the present limit. */
    double full() {
        return full;
    }

    /**
     * Returns whether a cost is at most 16 times the present capacity, as the rates are at most 16 times the present rate.
     * A bucket of any limit near the present one never has the tokens for a larger cost.
     */
    boolean mayFit(long cost) {
        return cost <= maxCost;
    }

    /** Returns the parts in the largest possible bucket. */
    double largest() {
        return largest;
    }

    /** Returns the number of the clock step that contains a moment. */
    long step(long nanos) {
        return stepNanos == 1 ? nanos : Math.floorDiv(nanos, stepNanos);
    }

    /** Returns the parts that a rate brings between two clock steps. */
    double refill(int rate, long from, long to) {
        int shift = shifts[rate];
        return (double) ((to >> shift) - (from >> shift)) * drains[rate];
    }
}
