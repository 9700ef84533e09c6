package io.ratelimit.redis;

import io.lettuce.core.RedisURI;
import io.ratelimit.BucketStore;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.lease.RecordedTakes;
import java.nio.file.Path;
import java.time.Duration;

/** A separate process that takes from one bucket by leases, until its input has another line. */
final class LeasesFromRedis {

    private LeasesFromRedis() {}

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
            RecordedTakes.in(Path.of(arguments[3])).take(store);
        }
    }
}
