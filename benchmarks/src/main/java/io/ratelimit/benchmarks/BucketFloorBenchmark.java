package io.ratelimit.benchmarks;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** The floor of a bucket: one read of the clock and one compare-and-set that all threads see. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class BucketFloorBenchmark {

    private final AtomicLong shared = new AtomicLong();

    @Benchmark
    public long nanoTime() {
        return System.nanoTime();
    }

    @Benchmark
    public boolean nanoTimeAndCompareAndSet() {
        long now = System.nanoTime();
        return shared.weakCompareAndSetVolatile(shared.get(), now);
    }
}
