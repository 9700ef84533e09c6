package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
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

/** A decision with and without the measurement of demand, for keys outside the sample and inside. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class DemandBenchmark {

    private static final BucketSpec FAST = ClockStep.NANOSECOND.plenty();

    /** At a sixteenth to sixteen times this rate, no key of the run ever pauses until its deficit is gone. */
    private static final BucketSpec SLOW = BucketSpec.of("100/1s").withCapacity(1_000_000_000);

    private static final int KEYS = 200_000;

    /** A power of two, below the size of the sample. */
    private static final int MEASURED_KEYS = 512;

    /** Whether demand is measured, and whether the key is in the sample. In a burst it never pauses between requests. */
    public enum Measured {
        NONE,
        OUTSIDE,
        INSIDE,
        INSIDE_BURST
    }

    @Param
    public Measured measured;

    private Throttlers throttlers;
    private List<List<Charge>> calls;
    private int next;

    /**
     * Lets so many keys ask that nearly all are outside, by decisions of a store, like those that are measured. The keys
     * that are measured then take turns: a single one would soon be among the most frequent, which are followed too.
     * Inside, the same keys are all that there are.
     */
    @Setup
    public void start() {
        TimeSource time = TimeSource.system();
        ThrottlePolicy policy = ThrottlePolicy.of("per-user", measured == Measured.INSIDE_BURST ? SLOW : FAST, "user");
        DemandListener demand = new DemandListener(time);
        ThrottleListener listener = measured == Measured.NONE ? ThrottleListener.NONE : demand;
        throttlers = new Throttlers(List.of(policy), BucketStore.local(time), time, listener);
        if (measured == Measured.OUTSIDE) {
            Throttlers others = new Throttlers(List.of(policy), BucketStore.local(time), time, ThrottleListener.NONE);
            for (int i = 0; i < KEYS; i++) {
                throttlers.listener().decided(others.decide(List.of(Charge.of(policy, "user" + i, 1))));
            }
        }
        calls = IntStream.range(0, MEASURED_KEYS)
                .mapToObj(i -> List.of(Charge.of(policy, "alice" + i + "@example.com", 1)))
                .toList();
    }

    @Benchmark
    public Decision decide() {
        next = next + 1 & MEASURED_KEYS - 1;
        return throttlers.decide(calls.get(next));
    }
}
