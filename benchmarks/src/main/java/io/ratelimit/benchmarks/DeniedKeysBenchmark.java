package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.PartitionedThrottler;
import io.ratelimit.PolicyListener;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.actuate.MeasuredListeners;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The cost of counting the keys denied most; allowed decisions should cost nothing. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class DeniedKeysBenchmark {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("per-user", BucketSpec.of("1/s"), "user");
    private static final int CALLS = 1 << 16;

    private final PolicyListener denied = Objects.requireNonNull(
            MeasuredListeners.deniedKeys(new SystemTimeSource()).added(new PartitionedThrottler(POLICY)));

    /** The number of denied keys, in random order. */
    @Param({"1", "100", "5000", "100000"})
    public int keys;

    private Decision allowed;
    private Decision[] order;

    @Setup
    public void fill() {
        SplittableRandom random = new SplittableRandom(1);
        allowed = decision("alice", Outcome.ALLOWED);
        Decision[] known = Stream.of(ClientKeys.of(keys))
                .map(key -> decision(key, Outcome.DENIED))
                .toArray(Decision[]::new);
        order = random.ints(CALLS, 0, keys).mapToObj(key -> known[key]).toArray(Decision[]::new);
    }

    private static Decision decision(String key, Outcome outcome) {
        Charge charge = Charge.of(POLICY, key, 1);
        return Decision.of(List.of(
                outcome == Outcome.ALLOWED
                        ? Answer.allowed(charge)
                        : Answer.denied(charge, outcome, Duration.ofNanos(1))));
    }

    /** A thread's position in the order of the calls. */
    @State(Scope.Thread)
    public static class Position {

        private int next;

        int next() {
            return next++ & CALLS - 1;
        }
    }

    @Benchmark
    public void allowed() {
        decided(allowed);
    }

    @Benchmark
    public void denied(Position position) {
        decided(order[position.next()]);
    }

    private void decided(Decision decision) {
        denied.decided(decision, decision.answers().get(0));
    }
}
