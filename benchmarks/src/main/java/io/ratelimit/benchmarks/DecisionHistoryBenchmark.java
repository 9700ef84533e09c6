package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.actuate.DecisionHistory;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Threads;

/** What the dashboard costs a decision, of one policy or of four. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class DecisionHistoryBenchmark {

    private final DecisionHistory history = new DecisionHistory(new SystemTimeSource());
    private final Decision one = decision("global");
    private final Decision four = decision("per-user", "per-endpoint", "per-ip", "global");

    private static Decision decision(String... policies) {
        Decision allowed = new Decision(Outcome.ALLOWED, 1, 0, 0, 1, 1, List.of());
        return Decision.of(Stream.of(policies)
                .map(name -> name.equals("global")
                        ? ThrottlePolicy.of(name, BucketSpec.of("1/s"))
                        : ThrottlePolicy.of(name, BucketSpec.of("1/s"), "user"))
                .map(policy -> new Answer(Charge.of(policy, "", 1), allowed))
                .toList());
    }

    @Benchmark
    public void onePolicy() {
        history.decided(one);
    }

    @Benchmark
    public void fourPolicies() {
        history.decided(four);
    }

    @Benchmark
    @Threads(2)
    public void fourPoliciesTwoThreads() {
        history.decided(four);
    }
}
