package io.ratelimit.demand;

import java.util.Arrays;

/**
 * A key whose requests are followed: its deficit at each rate, the maxima of the deficits, and the deficit of a bucket
 * under the present limit. Thread-safe.
 */
final class FollowedKey {

    final long hash;

    private final RequestTotals totals;

    /** The deficits at all rates, then their maxima, then the deficit under the present limit; in parts of a token. */
    private final double[] parts;

    private long lastStep;
    private int startHour;
    private float hourPeak;
    private volatile boolean heavy;

    /** @param totals the totals that requests are added to; its lock guards this key */
    FollowedKey(long hash, RequestTotals totals, int rates, int hour) {
        this.hash = hash;
        this.totals = totals;
        this.parts = new double[2 * rates + 1];
        this.startHour = hour;
    }

    /**
     * Adds a request. A step back counts as no time.
     *
     * @param price the cost in parts of a token
     * @param nanos the time of the request
     * @param sampleWeight how many requests this one represents, unless the key is heavy
     */
    void add(RateGrid grid, double price, long nanos, double sampleWeight) {
        double weight = heavy ? 1 : sampleWeight;
        long atStep = grid.step(nanos);
        synchronized (totals) {
            boolean first = parts[0] == 0;
            long step = first ? atStep : Math.max(atStep, lastStep);
            lastStep = first ? step : lastStep;
            int rates = grid.size();
            for (int i = 0; i < rates; i++) {
                double deficit = Math.max(parts[i] - grid.refill(i, lastStep, step), 0) + price;
                parts[i] = deficit;
                if (deficit > parts[rates + i]) {
                    parts[rates + i] = deficit;
                }
                totals.addDeficit(i, deficit, weight);
            }
            hourPeak = Math.max(hourPeak, (float) parts[grid.own()]);
            double level = Math.max(parts[2 * rates] - grid.refill(grid.own(), lastStep, step), 0);
            boolean denied = level + price > grid.full();
            parts[2 * rates] = denied ? level : level + price;
            lastStep = step;
            totals.add(denied, price, nanos, weight);
        }
    }

    /** Returns the maximum of the deficit at each rate, in parts of a token. */
    double[] peaks() {
        synchronized (totals) {
            int rates = parts.length / 2;
            return Arrays.copyOfRange(parts, rates, 2 * rates);
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

    boolean isHeavy() {
        return heavy;
    }

    /**
     * Returns the maximum of the deficit at the policy's own rate since the last call. Forgets the other maxima once they
     * are older than the given hours.
     */
    float endHour(int hour, int maxHours) {
        synchronized (totals) {
            float peak = hourPeak;
            hourPeak = 0;
            if (hour - startHour >= maxHours) {
                Arrays.fill(parts, parts.length / 2, parts.length - 1, 0);
                startHour = hour;
            }
            return peak;
        }
    }
}
