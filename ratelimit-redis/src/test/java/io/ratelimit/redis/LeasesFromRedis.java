package io.ratelimit.redis;

import io.lettuce.core.RedisURI;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.nio.LongBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;

/**
 * A separate process that takes from one bucket by leases, until its input ends. It writes the times before and after each
 * allowed take to a mapped file, which the operating system keeps if the process is killed.
 */
final class LeasesFromRedis {

    static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("2000/1s")).withLease(Duration.ofMillis(100));

    /** The most takes that are recorded, after which the process ends. */
    static final int MAX_TAKES = 100_000;

    private LeasesFromRedis() {}

    /** Maps the file: the number of takes, then two times in nanoseconds for each. */
    static LongBuffer map(Path file) throws Exception {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.CREATE)) {
            return channel.map(FileChannel.MapMode.READ_WRITE, 0, (1 + 2L * MAX_TAKES) * Long.BYTES)
                    .asLongBuffer();
        }
    }

    /** @param arguments host, port, prefix of keys, file */
    public static void main(String[] arguments) throws Exception {
        RedisClientFactory application =
                new PlainClients(RedisURI.create(arguments[0], Integer.parseInt(arguments[1])), false);
        Deadline deadline = new Deadline(new SystemTimeSource(), Duration.ofSeconds(1));
        try (RedisConnections connections = new RedisConnections(application)) {
            TestRedis.connect(connections);
            FailoverBucketStore store = new FailoverBucketStore(
                    "Redis",
                    RedisBucketStore.script(connections, new RedisKeys(arguments[2], ""), deadline),
                    BucketStore.local(new SystemTimeSource()),
                    1,
                    policy -> FailureRule.DENY,
                    deadline);
            System.out.println("ready");
            System.in.read();
            take(store, map(Path.of(arguments[3])));
        }
    }

    private static void take(FailoverBucketStore store, LongBuffer takes) throws Exception {
        for (int taken = 0; taken < MAX_TAKES && System.in.available() == 0; ) {
            long before = System.nanoTime();
            if (store.take(List.of(Charge.of(POLICY, "", 1))).allowed()) {
                takes.put(1 + 2 * taken, before);
                takes.put(2 + 2 * taken, System.nanoTime());
                takes.put(0, ++taken);
            }
        }
    }
}
