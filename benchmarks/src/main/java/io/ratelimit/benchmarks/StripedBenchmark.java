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

    /** What the threads ask of it. */
    public enum Load {
        /** Less than comes back: what is lent to a stripe is partly used and partly comes back by itself. */
        ALLOWED("1000000000/1s"),
        /** More than comes back: most calls are denied. */
        TOO_MUCH("1000000/1s");

        private final BucketSpec spec;

        Load(String rate) {
            this.spec = BucketSpec.of(rate);
        }
    }

    @Param
    public Load load;

    /** None for a bucket that isn't striped. */
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
