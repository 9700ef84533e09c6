package io.ratelimit.benchmarks;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
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

/** A decision about one limit in memory: without guaranteed shares, and by each way in which they serve a call. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // The setup does.
public class SharesBenchmark {

    /** What decides the call. */
    public enum Way {
        /** One bucket without shares, which has the tokens. */
        ONE_BUCKET,
        /** The tokens that all share. */
        BORROWED,
        /** The call's own lane, since the others have taken the rest. */
        GUARANTEED,
        /** One bucket without shares, which is empty. */
        ONE_BUCKET_DENIED,
        /** Neither the pool nor the lane has the tokens. */
        DENIED;

        /** Returns the way that a decision's time is compared with. */
        Way plain() {
            return this == DENIED || this == ONE_BUCKET_DENIED ? ONE_BUCKET_DENIED : ONE_BUCKET;
        }
    }

    /** More tokens than a run takes. */
    private static final long MANY = 1_000_000_000;

    @Param
    public Way way;

    private Throttler call;

    @Setup
    public void create() {
        boolean denied = way == Way.DENIED || way == Way.ONE_BUCKET_DENIED;
        long lane = way == Way.GUARANTEED ? MANY : 1;
        long capacity = way == Way.GUARANTEED ? 2 * MANY : denied ? 2 : 100 * MANY;
        ThrottlePolicy policy = ThrottlePolicy.of(
                "api", BucketSpec.of(denied ? "1/1h" : "1000000000/1h").withCapacity(capacity + 1));
        Shares shares =
                Shares.forKeys(BucketSpec.of(denied ? "1/2h" : "1000000/1h").withCapacity(lane), 2, List.of("user"));
        boolean one = way == Way.ONE_BUCKET || way == Way.ONE_BUCKET_DENIED;
        Throttlers throttlers = Throttlers.local(List.of(one ? policy : policy.withShares(shares)));
        call = one ? throttlers.global("api") : throttlers.global("api").guaranteedTo("alice");
        for (int i = 0; denied && i < 3; i++) {
            call.decide(1);
        }
    }

    @Benchmark
    public Decision decide() {
        return call.decide(1);
    }
}
