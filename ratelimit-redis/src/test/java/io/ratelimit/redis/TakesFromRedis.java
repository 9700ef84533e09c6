package io.ratelimit.redis;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Threads;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;

/** A separate process that takes from one bucket in several threads, and prints how many tokens it took. */
final class TakesFromRedis {

    static final long CAPACITY = 1_000;
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(CAPACITY));
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int TRANSACTION_THREADS = 4;

    /** More than the calls that a bucket has at a time, so that takes share calls. */
    private static final int SCRIPT_THREADS = 2 * CombinedTakes.MAX_CALLS;

    private TakesFromRedis() {}

    /**
     * Begins when it reads a line.
     *
     * @param arguments host, port, strategy, prefix of keys
     */
    public static void main(String[] arguments) throws Exception {
        boolean transactions = arguments[2].equals("transaction");
        try (RedisConnections connections = TestRedis.connections(arguments)) {
            BucketStore store = transactions
                    ? RedisBucketStore.transaction(
                            connections, new RedisKeys(arguments[3], ""), TestRedis.deadline(PATIENCE))
                    : RedisBucketStore.script(
                            connections, new RedisKeys(arguments[3], ""), TestRedis.deadline(PATIENCE));
            System.out.println("ready");
            System.in.read();
            System.out.println(taken(store, transactions ? TRANSACTION_THREADS : SCRIPT_THREADS));
        }
    }

    private static long taken(BucketStore store, int threads) {
        LongAdder taken = new LongAdder();
        Threads.run(threads, thread -> {
            for (long i = 0; i < 4 * CAPACITY / 5 / threads; i++) {
                if (store.take(List.of(Charge.of(POLICY, "", 1))).allowed()) {
                    taken.increment();
                }
            }
        });
        return taken.sum();
    }
}
