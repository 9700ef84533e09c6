package io.ratelimit.demand;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;

@Tag("slow")
class DemandConcurrencyTests {

    private static final int THREADS = 4;
    private static final int KEYS = 600;
    private static final int ROUNDS = 100;

    /** The requests come at one moment, so a lost one would be missing in the deficit of its key. */
    @RepeatedTest(5)
    void noRequestOfAFollowedKeyIsLost() throws Exception {
        DemandMeter meter = new DemandMeter(BucketSpec.of("10/1m"));
        inParallel(thread -> {
            for (int i = 0; i < KEYS * ROUNDS; i++) {
                meter.feed("key" + i % KEYS, 1, 0);
            }
        });
        Demand demand = meter.demand();
        assertThat(demand.needed(0)).hasSize(KEYS).containsOnly(THREADS * ROUNDS);
        assertThat(demand.requests()).isEqualTo((double) THREADS * KEYS * ROUNDS);
        assertThat(demand.touched().requests()).isEqualTo(1 - 10.0 / (THREADS * ROUNDS));
    }

    /** The keys that stay in the sample have all their requests, also while others enter and leave. */
    @RepeatedTest(5)
    void theSampleStaysWholeWhileKeysEnterAndLeave() throws Exception {
        DemandMeter meter = new DemandMeter(BucketSpec.of("10/1m"), 100);
        inParallel(thread -> {
            for (int i = 0; i < 20_000; i++) {
                meter.feed("key" + i, 1, 0);
                if (i % 500 == 0) {
                    meter.demand();
                }
            }
        });
        assertThat(meter.demand().needed(0)).hasSize(100).containsOnly(THREADS);
    }

    /**
     * The heavy key's hash is too large for the sample. The weight of the keys in the sample is a power of two, so no sum
     * rounds. A reading looks for the heaviest keys again.
     */
    @RepeatedTest(5)
    void aRequestOfAHeavyKeyRepresentsOnlyItselfAlsoWhileTheHeaviestKeysAreLookedFor() throws Exception {
        DemandMeter meter = new DemandMeter(
                BucketSpec.of("10/1m"), 15, key -> key.equals("heavy") ? -1 : Long.parseLong(key) << 50);
        IntStream.rangeClosed(1, 10_000).forEach(key -> meter.feed(Integer.toString(key), 1, 0));
        IntStream.range(0, 10_000).forEach(i -> meter.feed("heavy", 1, 0));
        double before = meter.demand().requests();
        inParallel(thread -> {
            for (int i = 0; i < 30_000; i++) {
                if (thread > 0) {
                    meter.feed("heavy", 1, 0);
                } else if (i % 10 == 0) {
                    meter.demand();
                }
            }
        });
        assertThat(meter.demand().requests() - before).isEqualTo((THREADS - 1) * 30_000.0);
    }

    private interface Work {
        void run(int thread) throws Exception;
    }

    private static void inParallel(Work work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        CountDownLatch start = new CountDownLatch(1);
        List<Future<?>> runs = IntStream.range(0, THREADS)
                .<Future<?>>mapToObj(thread -> threads.submit(() -> {
                    start.await();
                    work.run(thread);
                    return null;
                }))
                .toList();
        start.countDown();
        for (Future<?> run : runs) {
            run.get(10, TimeUnit.MINUTES);
        }
        threads.shutdown();
    }
}
