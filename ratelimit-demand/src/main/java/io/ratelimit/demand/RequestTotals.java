package io.ratelimit.demand;

import java.util.Arrays;

/**
 * The weights of followed requests: of all, of those that the present limit denies, and for each rate by the deficit
 * after the request. The bins of deficits are half octaves; all deficits above 2^24 tokens are in the last bin. The
 * lock of an instance guards the instance, and the keys whose requests it counts.
 */
final class RequestTotals {

    private static final int BINS = 48;
    private static final int BITS_BELOW_BIN = 51;

    /** One weight for each bin and rate. */
    private final double[] bins;

    private final int rates;
    private final long firstBin;
    private double all;
    private double denied;
    private double price;
    private boolean onePrice = true;
    private long firstNanos;
    private long lastNanos;

    /** @param perToken the parts of a token, the smallest deficit after a request */
    RequestTotals(int rates, double perToken) {
        this.bins = new double[rates * BINS];
        this.rates = rates;
        this.firstBin = key(perToken);
    }

    /** Adds a followed request at one rate. The caller holds the lock, as for the other changes. */
    void addDeficit(int rate, double deficit, double weight) {
        bins[bin(deficit) * rates + rate] += weight;
    }

    /** Adds a followed request at a rate and all higher rates, at which its deficit is the same. */
    void addDeficits(int firstRate, double deficit, double weight) {
        int start = bin(deficit) * rates;
        for (int i = start + firstRate; i < start + rates; i++) {
            bins[i] += weight;
        }
    }

    /**
     * Adds a followed request to the totals over all rates.
     *
     * @param isDenied whether a bucket under the present limit denies the request
     */
    void add(boolean isDenied, double price, long nanos, double weight) {
        addMoments(nanos, nanos);
        addPrice(price);
        all += weight;
        denied += isDenied ? weight : 0;
    }

    private void addMoments(long first, long last) {
        firstNanos = all == 0 || first - firstNanos < 0 ? first : firstNanos;
        lastNanos = all == 0 || last - lastNanos > 0 ? last : lastNanos;
    }

    private void addPrice(double price) {
        onePrice &= all == 0 || price == this.price;
        this.price = price;
    }

    /** Adds the totals to another instance, which belongs to the calling thread, and starts again from zero. */
    synchronized void moveTo(RequestTotals other) {
        other.add(this);
        Arrays.fill(bins, 0);
        all = 0;
        denied = 0;
        onePrice = true;
    }

    /** Bins contain their upper edge: deficits are often whole numbers of tokens, as capacities are. */
    private int bin(double deficit) {
        return (int) Math.min(key(deficit) - firstBin, BINS - 1);
    }

    /** Returns the exponent and the first bit of the mantissa of the next smaller double. */
    private static long key(double deficit) {
        return Double.doubleToRawLongBits(deficit) - 1 >> BITS_BELOW_BIN;
    }

    /** Adds the totals of another instance to this one, which belongs to the calling thread. */
    void add(RequestTotals other) {
        synchronized (other) {
            if (other.all == 0) {
                return;
            }
            addMoments(other.firstNanos, other.lastNanos);
            addPrice(other.price);
            onePrice &= other.onePrice;
            all += other.all;
            denied += other.denied;
            for (int i = 0; i < bins.length; i++) {
                bins[i] += other.bins[i];
            }
        }
    }

    double all() {
        return all;
    }

    double denied() {
        return denied;
    }

    boolean haveOnePrice() {
        return onePrice;
    }

    /** Returns the nanoseconds from the first request to the last; 0 without requests. */
    long nanos() {
        return Math.max(lastNanos - firstNanos, 0);
    }

    /**
     * Returns an upper bound of the weight of the requests whose deficit exceeds a value: the whole bin of the value
     * counts.
     */
    double above(int rate, double deficit) {
        double sum = 0;
        for (int bin = Math.max(bin(deficit), 0); bin < BINS; bin++) {
            sum += bins[bin * rates + rate];
        }
        return sum;
    }
}
