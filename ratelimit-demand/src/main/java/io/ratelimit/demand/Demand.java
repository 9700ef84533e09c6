package io.ratelimit.demand;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The demand of the keys of one policy or tier. Immutable.
 *
 * <p>For one key and one rate, the capacity needed is the largest excess of the cost over the refill, over all
 * intervals of time. It is the least capacity of a bucket that would never deny the key (Cruz, <em>A Calculus for
 * Network Delay</em>, 1991; Tang and Tai, <em>Network Traffic Characterization Using Token Bucket Model</em>, INFOCOM
 * 1999).
 *
 * <p>The keys are a uniform sample, or all keys if the sample has room for them. Each share of keys therefore has a
 * confidence interval of 95 %, for all present and future keys. The heaviest keys are known in addition to the sample,
 * and count only where a limit is to touch no key.
 */
public final class Demand {

    private static final int MIN_KEYS = 30;
    private static final Duration MIN_MEASURED = Duration.ofMinutes(10);
    private static final Duration MAX_WITHIN = Duration.ofDays(30);
    private static final int MAX_LENGTH = 32;

    private final RateGrid grid;
    private final double[][] needed;
    private final double[] maxNeeded;
    private final long keys;
    private final RequestTotals totals;
    private final Duration measured;
    private final List<Hour> hours;
    private final List<HeavyKey> heaviest;

    /**
     * @param sample the capacities that each key of the sample needs at each rate
     * @param others those of the heaviest keys that aren't in the sample
     */
    Demand(
            RateGrid grid,
            List<double[]> sample,
            List<double[]> others,
            long keys,
            RequestTotals totals,
            Duration measured,
            List<Hour> hours,
            List<HeavyKey> heaviest) {
        this.grid = grid;
        this.needed = new double[grid.size()][];
        this.maxNeeded = new double[grid.size()];
        for (int i = 0; i < needed.length; i++) {
            int rate = i;
            needed[i] =
                    sample.stream().mapToDouble(peaks -> peaks[rate]).sorted().toArray();
            maxNeeded[i] = others.stream()
                    .mapToDouble(peaks -> peaks[rate])
                    .reduce(sample.isEmpty() ? 0 : needed[i][sample.size() - 1], Math::max);
        }
        this.keys = keys;
        this.totals = totals;
        this.measured = measured;
        this.hours = hours;
        this.heaviest = heaviest;
    }

    /**
     * The capacity that a share of the keys needs at a rate.
     *
     * @param share the share of the keys that a bucket of this capacity never denies, from 0 to 1
     * @param capacity the capacity; for a share of 1 the maximum over the sample and the heaviest keys
     * @param atLeast the lower bound of the capacity for all keys
     * @param atMost the upper bound; {@link Double#POSITIVE_INFINITY} if the sample is too small for one
     */
    public record Quantile(double share, double capacity, double atLeast, double atMost) {}

    /**
     * The keys that a limit touches: it denies at least one of their requests.
     *
     * @param keys the touched keys of the sample
     * @param sample the keys of the sample
     * @param requests the estimated share of the requests that are denied. For the present limit it is counted on the
     *     followed keys. For another limit it is an upper bound: the requests that exceed the capacity, or nearly, if no
     *     request is denied. If all requests cost the same, a limit with at least the present rate and capacity denies at
     *     most as many requests as the present one
     */
    public record Touched(int keys, int sample, double requests) {

        /** Returns the share of the sample's keys that are touched; 0 for an empty sample. */
        public double share() {
            return sample == 0 ? 0 : (double) keys / sample;
        }

        /** Returns the lower bound of the share of all keys. */
        public double atLeast() {
            return Binomial.atLeast(sample, keys, 1);
        }

        /** Returns the upper bound of the share of all keys; about 3 / sample if no key of the sample is touched. */
        public double atMost() {
            return Binomial.atMost(sample, keys, 1);
        }
    }

    /**
     * A limit for a share of keys.
     *
     * @param spec the tightest of the measured rates, with the least capacity for it
     * @param touched the keys that it touches
     * @param outermost whether the rate is the lowest or the highest that is measured, so that a rate beyond may fit
     *     better
     */
    public record Suggestion(BucketSpec spec, Touched touched, boolean outermost) {

        /** Returns the lower bound of the share of all keys that the limit touches, whichever of the rates was chosen. */
        public double atLeast() {
            return Binomial.atLeast(touched.sample, touched.keys, RateGrid.SIZE);
        }

        /** Returns the upper bound of the share of all keys that the limit touches, whichever of the rates was chosen. */
        public double atMost() {
            return Binomial.atMost(touched.sample, touched.keys, RateGrid.SIZE);
        }
    }

    /**
     * A key that sends many requests.
     *
     * @param key the key as {@link io.ratelimit.Keys} composes it, shortened if it is long
     * @param requests the lower bound of the number of its requests, estimated
     * @param capacity the capacity that it needs at the policy's own rate, since it is followed
     */
    public record HeavyKey(String key, long requests, double capacity) {}

    /**
     * An hour of the last week.
     *
     * @param keys the keys of the sample that sent requests
     * @param p99 the capacity that 99 % of these keys needed at the policy's own rate, in whole tokens, rounded up
     * @param max the capacity that all of these keys needed, in whole tokens, rounded up
     */
    public record Hour(int keys, long p99, long max) {}

    /** Returns the present limit. */
    public BucketSpec spec() {
        return grid.spec();
    }

    /** Returns the measured rates, the lowest first: the present rate times 1/16 to 16, as far as a rate may be. */
    public List<Rate> rates() {
        return grid.rates();
    }

    /** Returns the index of the present rate in {@link #rates()}. */
    public int ownRate() {
        return grid.own();
    }

    /** Returns the number of keys in the sample. */
    public int sample() {
        return needed[0].length;
    }

    /** Returns the number of all keys, estimated if there are more keys than the sample has. */
    public long keys() {
        return keys;
    }

    /** Returns the number of requests, estimated if there are more keys than the sample has. */
    public double requests() {
        return totals.all();
    }

    /** Returns the time from the first to the last of the requests that are kept, which are of two weeks at most. */
    public Duration measured() {
        return measured;
    }

    /** Returns the hours of the last week that have ended, the latest first. */
    public List<Hour> hours() {
        return hours;
    }

    /** Returns the keys that send the most requests, the heaviest first; empty while the sample has all keys. */
    public List<HeavyKey> heaviest() {
        return heaviest;
    }

    /** Returns the capacities that the keys of the sample need at a rate, ascending. */
    public double[] needed(int rate) {
        return needed[rate].clone();
    }

    /**
     * Returns the capacity that a share of the keys needs at a rate; for a share of 1 the maximum over the sample and
     * the heaviest keys. Returns 0 if the sample has no keys.
     *
     * @param rate the index in {@link #rates()}
     * @param share from 0 to 1
     */
    public double capacity(int rate, double share) {
        int rank = rank(share, sample());
        return share >= 1 ? maxNeeded[rate] : rank == 0 ? 0 : needed[rate][rank - 1];
    }

    /**
     * Returns the {@link #capacity} with its error.
     *
     * @param rate the index in {@link #rates()}
     * @param share from 0 to 1
     */
    public Quantile quantile(int rate, double share) {
        double[] sorted = needed[rate];
        int n = sorted.length;
        double capacity = capacity(rate, share);
        int lower = Binomial.quantile(n, share, 0.025);
        int upper = Binomial.quantile(n, share, 0.975) + 1;
        return new Quantile(
                share,
                capacity,
                share >= 1 ? capacity : lower == 0 ? 0 : sorted[lower - 1],
                share >= 1 || upper > n ? Double.POSITIVE_INFINITY : sorted[upper - 1]);
    }

    /** Returns the number of keys in a share of n keys, rounded up. The rounding error of doubles adds no key. */
    static int rank(double share, int n) {
        return (int) Math.ceil(share * n - 1e-9);
    }

    /** Returns the keys that a limit touches. */
    public Touched touched(int rate, double capacity) {
        double[] sorted = needed[rate];
        int keys = (int) Arrays.stream(sorted).filter(each -> each > capacity).count();
        return new Touched(keys, sorted.length, deniedShare(rate, capacity));
    }

    private double deniedShare(int rate, double capacity) {
        if (totals.all() == 0 || maxNeeded[rate] <= capacity) {
            return 0;
        }
        boolean present = rate == grid.own() && capacity == spec().capacity();
        boolean looser = rate >= grid.own() && capacity >= spec().capacity() && totals.haveOnePrice();
        double bound = totals.above(rate, capacity * grid.perToken());
        return (present ? totals.denied() : looser ? Math.min(bound, totals.denied()) : bound) / totals.all();
    }

    /** Returns the keys that the present limit touches. */
    public Touched touched() {
        return touched(grid.own(), spec().capacity());
    }

    /**
     * Reads the share of keys that a suggested limit may touch: {@code 0.1%} or {@code 0.001}; 0.1 % without a text.
     *
     * @throws IllegalArgumentException if the text is not a share from 0 % to 50 %; the message begins with its name
     */
    public static double parseTouch(@Nullable String text) {
        if (text == null) {
            return 0.001;
        }
        boolean percent = text.endsWith("%");
        try {
            String number = percent ? text.substring(0, text.length() - 1).strip() : text;
            double share = Double.parseDouble(number) / (percent ? 100 : 1);
            if (text.length() <= MAX_LENGTH && share >= 0 && share <= 0.5) {
                return share;
            }
        } catch (NumberFormatException notANumber) {
            // The requirement is the same.
        }
        throw new IllegalArgumentException("touch must be a share from 0% to 50%, such as 0.1% or 0.001");
    }

    /**
     * Reads the time over which a suggested limit allows as few tokens as possible, such as {@code 1m}; a minute without a
     * text.
     *
     * @throws IllegalArgumentException if the text is not a time from 1 second to 30 days; the message begins with its name
     */
    public static Duration parseWithin(@Nullable String text) {
        if (text == null) {
            return Duration.ofMinutes(1);
        }
        try {
            Duration within = text.length() > MAX_LENGTH ? Duration.ZERO : Rate.parseDuration(text);
            if (within.compareTo(Duration.ofSeconds(1)) >= 0 && within.compareTo(MAX_WITHIN) <= 0) {
                return within;
            }
        } catch (IllegalArgumentException notADuration) {
            // The requirement is the same.
        }
        throw new IllegalArgumentException("within must be a time from 1s to 30d, such as 1m");
    }

    /**
     * Returns the tightest limit that touches at most a share of the sample's keys: of the measured rates, each with the
     * least capacity for it, the one that allows the fewest tokens within a time. A limit whose bucket takes longer from
     * empty to full than the {@linkplain #measured() measured time} isn't suggested: its rate would not have mattered yet.
     *
     * @param touch the share, from 0 for none up to, but not including, 1
     * @param within the time over which harm adds up
     * @return null if there are no keys, or each of the limits takes longer to full, or can't be configured
     */
    public @Nullable Suggestion suggest(double touch, Duration within) {
        Suggestion tightest = null;
        double minTokens = Double.POSITIVE_INFINITY;
        for (int i = 0; i < needed.length && sample() > 0; i++) {
            double capacity = Math.ceil(capacity(i, 1 - touch));
            Rate rate = grid.rates().get(i);
            double tokens = capacity
                    + (double) rate.tokens() * within.toNanos() / rate.period().toNanos();
            BucketSpec spec = spec(rate, capacity);
            if (spec != null && spec.timeToFull().compareTo(measured) <= 0 && tokens < minTokens) {
                minTokens = tokens;
                tightest = new Suggestion(spec, touched(i, capacity), i == 0 || i == needed.length - 1);
            }
        }
        return tightest;
    }

    /**
     * Returns whether the traffic is too little to suggest a limit from it: less than ten minutes, or fewer than 30 keys.
     *
     * @param global whether all calls have one key, so that ten minutes are enough
     */
    public boolean isTooLittle(boolean global) {
        return measured.compareTo(MIN_MEASURED) < 0 || !global && keys < MIN_KEYS;
    }

    private @Nullable BucketSpec spec(Rate rate, double capacity) {
        try {
            return spec().with(rate, (long) capacity);
        } catch (IllegalArgumentException outsideTheDomain) {
            return null;
        }
    }
}
