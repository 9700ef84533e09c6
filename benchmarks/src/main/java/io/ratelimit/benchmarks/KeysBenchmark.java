package io.ratelimit.benchmarks;

import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.infra.ThreadParams;

/** A decision where there are many keys, all known. The texts of the calls are not those that the limiter holds. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class KeysBenchmark {

    private static final int CALLS = 1 << 20;

    @Param
    public KeyedLimiter limiter;

    @Param({"100000", "1000000"})
    public int count;

    @Param
    public ClientKeys.Order order;

    private Predicate<String> throttle;
    private String[] keys;
    private int[] calls;

    @Setup
    public void fill() {
        throttle = limiter.create();
        for (String key : ClientKeys.of(count)) {
            throttle.test(key);
        }
        keys = ClientKeys.of(count);
        calls = order.of(count, CALLS);
    }

    /** A thread's position in the order of the calls; each thread begins at another one. */
    @State(Scope.Thread)
    public static class Position {

        private int next;

        @Setup
        public void begin(ThreadParams thread) {
            next = CALLS / thread.getThreadCount() * thread.getThreadIndex();
        }

        int next() {
            return next++ & CALLS - 1;
        }
    }

    @Benchmark
    public boolean decide(Position position) {
        return throttle.test(keys[calls[position.next()]]);
    }
}
