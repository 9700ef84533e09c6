package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("slow")
class TokenBucketConcurrencyTests {

    private static final int THREADS = 8;

    @Test
    void threadsTakeExactlyTheAvailableTokens() {
        ManualTimeSource time = new ManualTimeSource();
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("7/s").withCapacity(100_003), time);
        LongAdder granted = new LongAdder();
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 20_000; i++) {
                if (bucket.tryAcquire(3)) {
                    granted.add(3);
                }
            }
        });
        assertThat(granted.sum()).isEqualTo(100_002);
        assertThat(bucket.snapshot().available()).isEqualTo(1);
    }

    @Test
    void tokensThatThreadsGiveBackAreAvailableAgain() {
        ManualTimeSource time = new ManualTimeSource();
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("7/s").withCapacity(100), time);
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < 20_000; i++) {
                if (bucket.tryAcquire(1 + i % 30)) {
                    bucket.giveBack(1 + i % 30);
                }
            }
        });
        assertThat(bucket.snapshot().available()).isEqualTo(100);
        assertThat(bucket.snapshot().resetAfter()).isZero();
    }

    /** Each thread reads the clock before it takes. A thread that takes later than it read isn't denied for that. */
    @Test
    void onARealClockNoAvailableTokenIsDenied() {
        int rounds = 20_000;
        TokenBucket[] buckets = new TokenBucket[rounds];
        Arrays.setAll(buckets, round -> TokenBucket.of(BucketSpec.of("1/h").withCapacity(2)));
        AtomicInteger arrived = new AtomicInteger();
        LongAdder denied = new LongAdder();
        Threads.run(2, thread -> {
            for (int round = 0; round < rounds; round++) {
                arrived.incrementAndGet();
                while (arrived.get() < 2 * (round + 1)) {
                    Thread.onSpinWait();
                }
                denied.add(buckets[round].tryAcquire(1) ? 0 : 1);
            }
        });
        assertThat(denied.sum()).isZero();
    }

    /** G1; and a bucket under load loses no tokens, since it is never full again after the first burst. */
    @Test
    void underLoadGrantsCapacityAndRate() {
        long start = System.nanoTime();
        TokenBucket bucket = TokenBucket.of(BucketSpec.of("1000000/s").withCapacity(1_000));
        LongAdder granted = new LongAdder();
        Threads.run(THREADS, thread -> {
            while (System.nanoTime() - start < Duration.ofMillis(300).toNanos()) {
                granted.add(bucket.tryAcquire(1) ? 1 : 0);
            }
        });
        long end = System.nanoTime();
        assertThat(granted.sum()).isLessThanOrEqualTo(1_000 + (end - start) / 1_000 + 1);
    }
}
