package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** A decision by one bucket in memory: alone, and settled below and above its estimate. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class SettleBenchmark {

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("tokens", BucketSpec.of("1000000000/1s").withCapacity(10_000_000_000L), "user");

    private final Throttlers throttlers = Throttlers.local(List.of(POLICY));
    private final List<Charge> charges = List.of(Charge.of(POLICY, "alice", 5));

    @Benchmark
    public Decision decided() {
        return throttlers.decide(charges);
    }

    @Benchmark
    public boolean settledBelow() {
        return throttlers.settle(throttlers.decide(charges).answers().get(0), 3);
    }

    @Benchmark
    public boolean settledAbove() {
        return throttlers.settle(throttlers.decide(charges).answers().get(0), 7);
    }
}
