package io.ratelimit.replay;

import java.util.Arrays;

/** Counts over time in at most {@value #MAX} bins of equal width. The width doubles when a log needs more of them. */
final class Bins {

    private static final int MAX = 240;

    private final long[][] counts;
    private long widthNanos = 1_000_000_000L;
    private long firstNanos = Long.MIN_VALUE;
    private int used;

    /** @param series how many things are counted */
    Bins(int series) {
        this.counts = new long[series][MAX];
    }

    void add(int series, long nanos) {
        if (firstNanos == Long.MIN_VALUE) {
            firstNanos = nanos;
        }
        long bin = Math.max(0, nanos - firstNanos) / widthNanos;
        while (bin >= MAX) {
            widthNanos *= 2;
            for (long[] each : counts) {
                for (int i = 0; i < MAX / 2; i++) {
                    each[i] = each[2 * i] + each[2 * i + 1];
                }
                Arrays.fill(each, MAX / 2, MAX, 0);
            }
            bin /= 2;
            used = (used + 1) / 2;
        }
        counts[series][(int) bin]++;
        used = Math.max(used, (int) bin + 1);
    }

    long widthNanos() {
        return widthNanos;
    }

    long firstNanos() {
        return firstNanos;
    }

    long[] counts(int series) {
        return Arrays.copyOf(counts[series], used);
    }
}
