package io.ratelimit.benchmarks;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** The keys of many clients, such as tokens or accounts. */
public final class ClientKeys {

    private static final int MIN_LENGTH = 20;
    private static final int MAX_LENGTH = 40;

    private ClientKeys() {}

    /** Returns keys of 20 to 40 characters. Each call creates new texts, as each request brings its own. */
    static String[] of(int count) {
        SplittableRandom random = new SplittableRandom(7);
        HexFormat hex = HexFormat.of();
        String[] keys = new String[count];
        for (int i = 0; i < count; i++) {
            String text = hex.toHexDigits(random.nextLong()) + hex.toHexDigits(random.nextLong()) + hex.toHexDigits(i);
            keys[i] = text.substring(MAX_LENGTH - random.nextInt(MIN_LENGTH, MAX_LENGTH + 1));
        }
        return keys;
    }

    /** The order in which the keys come; the same order in each run. */
    public enum Order {
        /** Any key next. */
        UNIFORM {
            @Override
            int[] of(int count, int length) {
                return new SplittableRandom(42).ints(length, 0, count).toArray();
            }
        },
        /** The order has Zipf's law with the exponent 1: the second key comes half as often as the first, the third a third. */
        ZIPF {
            @Override
            int[] of(int count, int length) {
                double[] sums = IntStream.rangeClosed(1, count)
                        .mapToDouble(rank -> 1.0 / rank)
                        .toArray();
                Arrays.parallelPrefix(sums, Double::sum);
                return new SplittableRandom(42)
                        .doubles(length, 0, sums[count - 1])
                        .mapToInt(sum -> (int) (rank(sums, sum) * SPREAD % count))
                        .toArray();
            }
        };

        /** A prime, so that frequent keys are not neighbours in memory. */
        private static final long SPREAD = 7919;

        abstract int[] of(int count, int length);

        private static int rank(double[] sums, double sum) {
            int found = Arrays.binarySearch(sums, sum);
            return found < 0 ? -found - 1 : found;
        }
    }
}
