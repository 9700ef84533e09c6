package io.ratelimit.demand;

import java.util.Arrays;

/**
 * A key whose requests are followed: its deficit at each rate, the maxima of the deficits, and the deficit of a bucket
 * under the present limit. Thread-safe.
 */
final class FollowedKey {

    /*
     * Which deficits change? At each rate a request adds its price to what time has left of the deficit. A lower rate
     * leaves at least as much as a higher one. So if nothing is left at one rate, nothing is left at the higher rates
     * either, and the deficit at all of them is the price. These idle rates share one entry, which follows those of the
     * busy rates. The maxima fall from rate to rate as well, so a price that isn't above the last maximum is above
     * none. A client that pauses between its requests costs one subtraction, and a burst one for each rate.
     */
    final long hash;

    private final RequestTotals totals;

    /** The deficits at the busy rates and the first idle one, then, from the middle, the maxima; in parts of a token. */
    private final double[] parts;

    /** The number of busy rates. */
    private byte busy;

    /** The deficit of a bucket under the present limit, which a denied request leaves as it is. */
    private double level;

    private long lastStep;
    private double hourPeak;
    private volatile boolean heavy;

    /** @param totals the totals that requests are added to; its lock guards this key */
    FollowedKey(long hash, RequestTotals totals, int rates) {
        this.hash = hash;
        this.totals = totals;
        this.parts = new double[2 * rates];
    }

    /**
     * Adds a request. A step back counts as no time.
     *
     * @param price the cost in parts of a token
     * @param sampleWeight how many requests this one represents, unless the key is heavy
     */
    void add(RateGrid grid, double price, long nanos, double sampleWeight) {
        double weight = heavy ? 1 : sampleWeight;
        long atStep = grid.step(nanos);
        synchronized (totals) {
            lastStep = parts[0] == 0 ? atStep : lastStep;
            long step = Math.max(atStep, lastStep);
            boolean denied = addToLevel(grid, price, step);
            addToDeficits(grid, price, step, weight);
            lastStep = step;
            hourPeak = Math.max(hourPeak, parts[Math.min(grid.own(), busy)]);
            totals.add(denied, price, nanos, weight);
        }
    }

    /** Takes the price from a bucket under the present limit. Returns whether the bucket denies the request. */
    private boolean addToLevel(RateGrid grid, double price, long step) {
        double left = Math.max(level - grid.refill(grid.own(), lastStep, step), 0);
        boolean denied = left + price > grid.full();
        level = denied ? left : left + price;
        return denied;
    }

    private void addToDeficits(RateGrid grid, double price, long step, double weight) {
        int rates = parts.length / 2;
        double idle = parts[Math.min(busy, rates - 1)];
        int rate = 0;
        for (; rate < rates; rate++) {
            double left = (rate < busy ? parts[rate] : idle) - grid.refill(rate, lastStep, step);
            if (left <= 0) {
                break;
            }
            double deficit = Math.min(left + price, grid.largest());
            parts[rate] = deficit;
            parts[rates + rate] = Math.max(parts[rates + rate], deficit);
            totals.addDeficit(rate, deficit, weight);
        }
        busy = (byte) rate;
        if (rate < rates) {
            parts[rate] = price;
            totals.addDeficits(rate, price, weight);
        }
        for (; rate < rates && price > parts[2 * rates - 1]; rate++) {
            parts[rates + rate] = Math.max(parts[rates + rate], price);
        }
    }

    /** Returns the maximum of the deficit at each rate in this week, in parts of a token. */
    double[] peaks() {
        synchronized (totals) {
            return Arrays.copyOfRange(parts, parts.length / 2, parts.length);
        }
    }

    long lastStep() {
        synchronized (totals) {
            return lastStep;
        }
    }

    /** Sets whether the key is followed because it is frequent, so that its requests represent only themselves. */
    void setHeavy(boolean heavy) {
        this.heavy = heavy;
    }

    /** Returns the maximum of the deficit at the policy's own rate since the last call. */
    double endHour() {
        synchronized (totals) {
            double peak = hourPeak;
            hourPeak = 0;
            return peak;
        }
    }

    /** Returns the maxima of this week, and begins the next one. */
    double[] endWeek() {
        synchronized (totals) {
            double[] peaks = peaks();
            Arrays.fill(parts, parts.length / 2, parts.length, 0);
            return peaks;
        }
    }
}
