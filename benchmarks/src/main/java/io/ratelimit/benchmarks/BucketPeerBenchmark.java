package io.ratelimit.benchmarks;

import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.local.SynchronizationStrategy;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** One bucket of theirs, as it comes: bucket4j counts milliseconds, lock-free. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class BucketPeerBenchmark {

    private final Bucket full = Peers.bucket4j(ClockStep.PLENTY, 1_000_000, Duration.ofSeconds(1));
    private final Bucket empty = Peers.bucket4j(1, 1, Duration.ofDays(1));
    private final Bucket fullWithLock = locking(ClockStep.PLENTY, 1_000_000, Duration.ofSeconds(1));
    private final Bucket emptyWithLock = locking(1, 1, Duration.ofDays(1));
    private final io.github.resilience4j.ratelimiter.RateLimiter fullResilience4j =
            Peers.resilience4j(1_000_000_000, Duration.ofSeconds(1));
    private final io.github.resilience4j.ratelimiter.RateLimiter emptyResilience4j =
            Peers.resilience4j(1, Duration.ofDays(1));
    private final RateLimiter fullGuava = RateLimiter.create(1e9);
    private final RateLimiter emptyGuava = RateLimiter.create(1e-5);

    private static Bucket locking(long capacity, long tokens, Duration period) {
        return Bucket.builder()
                .addLimit(limit -> limit.capacity(capacity).refillGreedy(tokens, period))
                .withSynchronizationStrategy(SynchronizationStrategy.SYNCHRONIZED)
                .build();
    }

    @Benchmark
    public boolean bucket4jAllowed() {
        return full.tryConsume(1);
    }

    @Benchmark
    public boolean bucket4jDenied() {
        return empty.tryConsume(1);
    }

    @Benchmark
    public boolean bucket4jWithLockAllowed() {
        return fullWithLock.tryConsume(1);
    }

    @Benchmark
    public boolean bucket4jWithLockDenied() {
        return emptyWithLock.tryConsume(1);
    }

    @Benchmark
    public boolean resilience4jAllowed() {
        return fullResilience4j.acquirePermission();
    }

    @Benchmark
    public boolean resilience4jDenied() {
        return emptyResilience4j.acquirePermission();
    }

    @Benchmark
    public boolean guavaAllowed() {
        return fullGuava.tryAcquire();
    }

    @Benchmark
    public boolean guavaDenied() {
        return emptyGuava.tryAcquire();
    }
}
