package io.ratelimit.benchmarks;

import io.ratelimit.Decision;
import io.ratelimit.TokenBucket;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** One bucket of ours. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class BucketBenchmark {

    @Param
    public ClockStep step;

    private TokenBucket full;
    private TokenBucket empty;

    @Setup
    public void fill() {
        full = TokenBucket.of(step.plenty());
        empty = TokenBucket.of(step.one());
        empty.tryAcquire(1);
    }

    @Benchmark
    public boolean tryAcquireAllowed() {
        return full.tryAcquire(1);
    }

    @Benchmark
    public boolean tryAcquireDenied() {
        return empty.tryAcquire(1);
    }

    @Benchmark
    public Decision decideAllowed() {
        return full.decide(1);
    }

    @Benchmark
    public Decision decideDenied() {
        return empty.decide(1);
    }
}
