package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
class StripedBucketConcurrencyTests {

    private static final int THREADS = 8;

    private final ManualTimeSource time = new ManualTimeSource();
    private final LongAdder granted = new LongAdder();

    /** Gathering for costs of any size while other threads take from slices: all tokens are granted, and never more. */
    @RepeatedTest(20)
    void threadsTakeExactlyTheAvailableTokens() {
        StripedBucket bucket = new StripedBucket(BucketSpec.of("7/s").withCapacity(30_011), 4, time);
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 20_000; i++) {
                long cost = i % 97 == 0 ? 1 + thread * 100 : 1 + i % 2;
                granted.add(bucket.tryAcquire(cost, (thread + i / 500) % 4) ? cost : 0);
            }
        });
        assertThat(granted.sum()).isEqualTo(30_011);
        assertThat(bucket.snapshot().available()).isZero();
    }

    @Test
    void tokensThatThreadsGiveBackAreAvailableAgain() {
        StripedBucket bucket = new StripedBucket(BucketSpec.of("7/s").withCapacity(1_000), 3, time);
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 20_000; i++) {
                long cost = 1 + i % 7;
                if (bucket.tryAcquire(cost, (thread + i) % 3)) {
                    bucket.giveBack(cost);
                }
            }
        });
        assertThat(bucket.snapshot().resetAfter()).isZero();
    }

    /** Other threads take snapshots, reserve, cancel and reconfigure, which all gather the slices. */
    @RepeatedTest(20)
    void noTokenIsAddedOrLostWhileSlicesAreGathered() {
        BucketSpec spec = BucketSpec.of("1000/1d").withCapacity(100_000);
        StripedBucket bucket = new StripedBucket(spec, 4, time);
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 3_000; i++) {
                granted.add(bucket.tryAcquire(1, thread % 4) ? 1 : 0);
                if (thread == 0) {
                    bucket.reserve(100).cancel();
                } else if (thread == 1) {
                    bucket.reconfigure(spec.withCapacity(100_000 + i));
                } else if (thread == 2) {
                    granted.add(bucket.decide(2).allowed() ? 2 : 0);
                }
            }
        });
        assertThat(bucket.snapshot().available()).isEqualTo(100_000 - granted.sum());
    }

    /** G1 and G2 on the machine's clock: so slow a rate brings nothing while the test runs. */
    @RepeatedTest(20)
    void onARealClockNoAvailableTokenIsDenied() {
        TokenBucket bucket = TokenBucket.striped(BucketSpec.of("1/365d").withCapacity(10), 2);
        TokenBucket large = TokenBucket.striped(BucketSpec.of("1/1d").withCapacity(3_650), 2);
        LongAdder ofLarge = new LongAdder();
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 1_000; i++) {
                granted.add(bucket.tryAcquire(1) ? 1 : 0);
                ofLarge.add(large.tryAcquire(1) ? 1 : 0);
            }
        });
        assertThat(granted.sum()).isEqualTo(10);
        assertThat(ofLarge.sum()).isEqualTo(3_650);
    }

    /** G1 while slices melt and threads take from them. */
    @Test
    void underLoadGrantsCapacityAndRate() {
        long start = System.nanoTime();
        TokenBucket bucket = TokenBucket.striped(BucketSpec.of("1000000/s").withCapacity(10_000), 4);
        Threads.run(THREADS, thread -> {
            while (System.nanoTime() - start < Duration.ofMillis(300).toNanos()) {
                granted.add(bucket.tryAcquire(1) ? 1 : 0);
            }
        });
        long end = System.nanoTime();
        assertThat(granted.sum()).isLessThanOrEqualTo(10_000 + (end - start) / 1_000 + 1);
    }
}
