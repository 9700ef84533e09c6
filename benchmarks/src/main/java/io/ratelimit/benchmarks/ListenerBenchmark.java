package io.ratelimit.benchmarks;

import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
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

/** A decision of two policies, one global and one with a key, with several sets of listeners. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class ListenerBenchmark {

    private static final ThrottlePolicy GLOBAL = ThrottlePolicy.of("global", ClockStep.NANOSECOND.plenty());
    private static final ThrottlePolicy USER = ThrottlePolicy.of("per-user", ClockStep.NANOSECOND.plenty(), "user");
    private static final ThrottlePolicy DRAINED = ThrottlePolicy.of("drained", ClockStep.NANOSECOND.one(), "user");

    @Param
    public Listening listening;

    private Throttlers throttlers;
    private List<Charge> allowed;
    private List<Charge> denied;

    @Setup
    public void start() {
        TimeSource time = TimeSource.system();
        throttlers =
                new Throttlers(List.of(GLOBAL, USER, DRAINED), BucketStore.local(time), time, listening.create(time));
        Charge global = Charge.of(throttlers.get(GLOBAL.name()).policy(), "", 1);
        allowed = List.of(Charge.of(throttlers.get(USER.name()).policy(), "alice", 1), global);
        denied = List.of(Charge.of(throttlers.get(DRAINED.name()).policy(), "alice", 1), global);
        throttlers.decide(denied);
    }

    @Benchmark
    public Decision decideAllowed() {
        return throttlers.decide(allowed);
    }

    @Benchmark
    public Decision decideDenied() {
        return throttlers.decide(denied);
    }
}
