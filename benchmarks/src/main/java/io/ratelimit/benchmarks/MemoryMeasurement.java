package io.ratelimit.benchmarks;

import java.lang.ref.Reference;
import java.util.function.Predicate;

/**
 * The heap that each of a million idle keys takes beside its own text. Measures one limiter, for each needs a JVM of its
 * own, and prints its name and the bytes.
 */
public final class MemoryMeasurement {

    private static final int KEYS = 1_000_000;

    private MemoryMeasurement() {}

    public static void main(String[] limiter) throws InterruptedException {
        System.out.println(limiter[0] + "\t" + bytesPerKey(KeyedLimiter.valueOf(limiter[0]), KEYS));
    }

    static long bytesPerKey(KeyedLimiter limiter, int count) throws InterruptedException {
        limiter.create().test("warm up");
        String[] keys = ClientKeys.of(count);
        long before = usedHeap();
        Predicate<String> throttle = limiter.create();
        for (String key : keys) {
            throttle.test(key);
        }
        long after = usedHeap();
        Reference.reachabilityFence(throttle);
        Reference.reachabilityFence(keys);
        return Math.round((double) (after - before) / count);
    }

    /** After what others do in the background: Caffeine puts its own notes in order. */
    private static long usedHeap() throws InterruptedException {
        Runtime runtime = Runtime.getRuntime();
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(200);
        }
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
