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

/** A slot of a call in flight, taken and released. The texts of the calls are not those that the limiter holds. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class SlotsBenchmark {

    private static final int CALLS = 1 << 20;

    @Param
    public KeyedSlots limiter;

    @Param({"1", "100000"})
    public int count;

    private Predicate<String> slots;
    private String[] keys;
    private int[] calls;
    private int next;

    @Setup
    public void fill() {
        slots = limiter.create();
        for (String key : ClientKeys.of(count)) {
            slots.test(key);
        }
        keys = ClientKeys.of(count);
        calls = ClientKeys.Order.UNIFORM.of(count, CALLS);
    }

    @Benchmark
    public boolean takeAndRelease() {
        return slots.test(keys[calls[next++ & CALLS - 1]]);
    }
}
