package io.ratelimit.benchmarks;

import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** A decision with and without the measurement of demand, for a key inside and a key outside the sample. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class DemandBenchmark {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("per-user", ClockStep.NANOSECOND.plenty(), "user");
    private static final int KEYS = 1_000_000;

    /** Whether demand is measured, and whether the key of the request is in the sample. */
    public enum Measured {
        NONE,
        OUTSIDE,
        INSIDE
    }

    @Param
    public Measured measured;

    private Throttlers throttlers;
    private List<Charge> charges;

    /** Lets so many keys ask that nearly all are outside; the first key is inside while there are no others. */
    @Setup
    public void start() {
        TimeSource time = TimeSource.system();
        DemandListener demand = new DemandListener(time);
        ThrottleListener listener = measured == Measured.NONE ? ThrottleListener.NONE : demand;
        throttlers = new Throttlers(List.of(POLICY), BucketStore.local(time), time, listener);
        if (measured == Measured.OUTSIDE) {
            for (int i = 0; i < KEYS; i++) {
                demand.decided(Decision.of(List.of(Decision.Answer.allowed(Charge.of(POLICY, "user" + i, 1)))));
            }
        }
        charges = List.of(Charge.of(POLICY, "alice@example.com", 1));
    }

    @Benchmark
    public Decision decide() {
        return throttlers.decide(charges);
    }
}
