package io.ratelimit.benchmarks;

import java.util.SplittableRandom;

/** The keys of many clients: addresses, as most limits go by. */
final class ClientKeys {

    private ClientKeys() {}

    /** New texts in each call, as each request brings its own. */
    static String[] of(int count) {
        String[] keys = new String[count];
        for (int i = 0; i < count; i++) {
            keys[i] = "10." + (i >>> 16) + "." + (i >>> 8 & 0xff) + "." + (i & 0xff);
        }
        return keys;
    }

    /** The order in which they come: any of them next, always the same order. */
    static int[] order(int count, int length) {
        SplittableRandom random = new SplittableRandom(42);
        return random.ints(length, 0, count).toArray();
    }
}
