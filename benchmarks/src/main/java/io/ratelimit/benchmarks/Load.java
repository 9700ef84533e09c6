package io.ratelimit.benchmarks;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Threads that call as fast as they are answered, as a server's threads do at most.
 *
 * @param keys of which each call takes any
 */
record Load(int threads, String[] keys) {

    /**
     * The result of a load run.
     *
     * @param perSecond allowed calls in a second
     * @param medianMicros the median of the calls' times
     * @param p99Micros the 99th percentile of the times
     * @param failedPercent the share of calls that were not allowed
     */
    record Sample(double perSecond, double medianMicros, double p99Micros, double failedPercent) {}

    private record Calls(IntStream nanos, int failed) {}

    Sample run(Predicate<String> limiter, long millis) {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            long start = System.nanoTime();
            long end = start + millis * 1_000_000;
            List<CompletableFuture<Calls>> running = Stream.generate(
                            () -> CompletableFuture.supplyAsync(() -> calls(limiter, end), pool))
                    .limit(threads)
                    .toList();
            List<Calls> all = running.stream().map(CompletableFuture::join).toList();
            return sample(all, (System.nanoTime() - start) / 1e9);
        } finally {
            pool.shutdown();
        }
    }

    private Calls calls(Predicate<String> limiter, long end) {
        SplittableRandom random = new SplittableRandom(Thread.currentThread().getId());
        IntStream.Builder nanos = IntStream.builder();
        int failed = 0;
        long before = System.nanoTime();
        do {
            failed += limiter.test(keys[random.nextInt(keys.length)]) ? 0 : 1;
            long after = System.nanoTime();
            nanos.add((int) Math.min(after - before, Integer.MAX_VALUE));
            before = after;
        } while (end - before > 0);
        return new Calls(nanos.build(), failed);
    }

    private static Sample sample(List<Calls> all, double seconds) {
        int[] nanos = all.stream().flatMapToInt(Calls::nanos).toArray();
        Arrays.sort(nanos);
        int failed = all.stream().mapToInt(Calls::failed).sum();
        return new Sample(
                (nanos.length - failed) / seconds,
                nanos[nanos.length / 2] / 1e3,
                nanos[(int) (nanos.length * 0.99)] / 1e3,
                100.0 * failed / nanos.length);
    }
}
