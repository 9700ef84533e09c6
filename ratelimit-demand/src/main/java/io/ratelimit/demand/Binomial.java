package io.ratelimit.demand;

import java.util.function.DoublePredicate;

/** The binomial distribution, for the error of shares that a sample shows. */
final class Binomial {

    private static final double TAIL = 0.025;
    private static final double ONE_SIDED_TAIL = 0.05;

    private Binomial() {}

    /** Returns the probability of at most {@code k} successes in {@code n} trials. */
    static double cumulative(int n, double p, int k) {
        if (k >= n || p <= 0) {
            return 1;
        }
        if (p >= 1) {
            return 0;
        }
        double logOdds = Math.log(p) - Math.log1p(-p);
        double logTerm = n * Math.log1p(-p);
        double sum = Math.exp(logTerm);
        for (int i = 1; i <= k; i++) {
            logTerm += Math.log((double) (n - i + 1) / i) + logOdds;
            sum += Math.exp(logTerm);
        }
        return Math.min(sum, 1);
    }

    /** Returns the smallest number of successes whose cumulative probability is at least {@code probability}. */
    static int quantile(int n, double p, double probability) {
        int low = 0;
        int high = n;
        while (low < high) {
            int middle = (low + high) / 2;
            if (cumulative(n, p, middle) >= probability) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    /**
     * Returns the upper bound of a share of which a sample shows {@code k} of {@code n} (Clopper and Pearson). For none it
     * is about 3/n: the bound then has only one side.
     *
     * @param choices how many shares of the sample the share was chosen from; the bound holds for all of them (Bonferroni)
     */
    static double atMost(int n, int k, int choices) {
        double tail = (k == 0 ? ONE_SIDED_TAIL : TAIL) / choices;
        return k >= n ? 1 : bisect(p -> cumulative(n, p, k) > tail);
    }

    /** Returns the lower bound, as {@link #atMost} returns the upper bound. */
    static double atLeast(int n, int k, int choices) {
        double tail = (k == n ? ONE_SIDED_TAIL : TAIL) / choices;
        return k == 0 ? 0 : bisect(p -> 1 - cumulative(n, p, k - 1) < tail);
    }

    /** Returns the probability up to which a condition holds. */
    private static double bisect(DoublePredicate holds) {
        double low = 0;
        double high = 1;
        for (int i = 0; i < 50; i++) {
            double middle = (low + high) / 2;
            if (holds.test(middle)) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return low;
    }
}
