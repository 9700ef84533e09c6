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
    public Decision settledBelow() {
        return settled(3);
    }

    @Benchmark
    public Decision settledAbove() {
        return settled(7);
    }

    /** Returns the decision, or else the compiler would leave out the object. */
    private Decision settled(long cost) {
        Decision decision = throttlers.decide(charges);
        throttlers.settle(decision.answers().get(0), cost);
        return decision;
    }
}
