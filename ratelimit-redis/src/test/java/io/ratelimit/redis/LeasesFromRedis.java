package io.ratelimit.redis;

import io.ratelimit.remote.lease.RecordedTakes;
import java.nio.file.Path;

/** A separate process that takes from one bucket by leases, until its input has another line. */
final class LeasesFromRedis {

    private LeasesFromRedis() {}

    /** @param arguments host, port, prefix of keys, file */
    public static void main(String[] arguments) throws Exception {
        try (RedisConnections connections = TestRedis.connections(arguments)) {
            RecordedTakes.in(Path.of(arguments[3])).take(TestRedis.denyingStore(connections, arguments[2]));
        }
    }
}
