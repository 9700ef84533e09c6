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
import java.util.stream.IntStream;
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

    /** A power of two, below the size of the sample. */
    private static final int MEASURED_KEYS = 512;

    /** Whether demand is measured, and whether the key of the request is in the sample. */
    public enum Measured {
        NONE,
        OUTSIDE,
        INSIDE
    }

    @Param
    public Measured measured;

    private Throttlers throttlers;
    private List<List<Charge>> calls;
    private int next;

    /**
     * Lets so many keys ask that nearly all are outside. The keys that are measured then take turns: a single one would soon
     * be among the most frequent, which are followed too. Inside, the same keys are all that there are.
     */
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
        calls = IntStream.range(0, MEASURED_KEYS)
                .mapToObj(i -> List.of(Charge.of(POLICY, "alice" + i + "@example.com", 1)))
                .toList();
    }

    @Benchmark
    public Decision decide() {
        next = next + 1 & MEASURED_KEYS - 1;
        return throttlers.decide(calls.get(next));
    }
}
