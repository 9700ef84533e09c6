package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
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

/** One limit, taken from by several threads: a bucket, and the same one in stripes. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class StripedBenchmark {

    /** The load of the threads. */
    public enum Load {
        /** Less than the refill: a slice of a stripe is partly used and partly melts. */
        ALLOWED("1000000000/1s"),
        /** More than the refill: most calls are denied. */
        TOO_MUCH("1000000/1s");

        private final BucketSpec spec;

        Load(String rate) {
            this.spec = BucketSpec.of(rate);
        }
    }

    @Param
    public Load load;

    /** The number of stripes; 0 for a bucket without stripes. */
    @Param({"0", "2", "8"})
    public int stripes;

    private TokenBucket bucket;

    @Setup
    public void fill() {
        bucket = stripes == 0 ? TokenBucket.of(load.spec) : TokenBucket.striped(load.spec, stripes);
    }

    @Benchmark
    public boolean tryAcquire() {
        return bucket.tryAcquire(1);
    }
}
