package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.ArrayList;
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

/** A decision in memory where code gives a call its own limit, with 10,000 customers. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class OwnLimitBenchmark {

    private static final int CUSTOMERS = 10_000;
    private static final Duration MINUTE = Duration.ofMinutes(1);

    /** The specs of the calls. */
    public enum Limits {
        /** All customers have the policy's limit. */
        THE_POLICYS,
        /** All customers have a limit that is equal to the policy's, and created anew for each call. */
        A_NEW_EQUAL_ONE,
        /** Each customer has another limit. */
        EACH_CUSTOMERS_OWN,
        /** Each customer's limit changes with each call, between two plans. */
        ANOTHER_EACH_CALL,
        /** All customers have the policy's limit, with refill in batches. */
        THE_POLICYS_IN_BATCHES,
        /** Each customer's limit changes with each call, between two rates with refill in batches. */
        ANOTHER_EACH_CALL_IN_BATCHES;

        private boolean inBatches() {
            return this == THE_POLICYS_IN_BATCHES || this == ANOTHER_EACH_CALL_IN_BATCHES;
        }

        /** Returns the limits that a decision's time is compared with. */
        Limits plain() {
            return inBatches() ? THE_POLICYS_IN_BATCHES : THE_POLICYS;
        }
    }

    @Param
    public Limits limits;

    private static final BucketSpec BATCHES =
            new BucketSpec(new Rate(1_000_000, MINUTE), 1_000_000_000, Refill.INTERVAL);

    private ThrottlePolicy policy;
    private final BucketStore store = BucketStore.local(TimeSource.system());
    private final List<BucketSpec> specs = new ArrayList<>();
    private final List<String> keys = new ArrayList<>();
    private int call;

    @Setup
    public void fill() {
        policy = ThrottlePolicy.of("plans", limits.inBatches() ? BATCHES : BucketSpec.of("1000000000/1s"), "user");
        for (int i = 0; i < 2 * CUSTOMERS; i++) {
            specs.add(
                    switch (limits) {
                        case THE_POLICYS, A_NEW_EQUAL_ONE, THE_POLICYS_IN_BATCHES -> policy.spec();
                        case ANOTHER_EACH_CALL_IN_BATCHES ->
                            BATCHES.withRate(new Rate(1_000_000 + i / CUSTOMERS, MINUTE));
                        case ANOTHER_EACH_CALL -> policy.spec().withCapacity(1_000_000_000 - i / CUSTOMERS);
                        default -> policy.spec().withCapacity(1_000_000_000 - i);
                    });
            keys.add("customer-" + i % CUSTOMERS);
        }
    }

    @Benchmark
    public boolean decide() {
        call = call + 1 == specs.size() ? 0 : call + 1;
        BucketSpec spec = specs.get(limits == Limits.EACH_CUSTOMERS_OWN ? call % CUSTOMERS : call);
        if (limits == Limits.A_NEW_EQUAL_ONE) {
            spec = spec.withCapacity(1_000_000_000);
        }
        return store.take(List.of(new Charge(policy, spec, keys.get(call), 1))).allowed();
    }
}
