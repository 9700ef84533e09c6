package io.ratelimit.benchmarks.bounds;

import io.ratelimit.TimeSource;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.remote.Deadline;
import java.time.Duration;
import org.h2.jdbcx.JdbcDataSource;

/** ratelimit with its buckets in a table of H2, which another process serves. */
final class OnDatabase {

    private static final Duration TIMEOUT = Duration.ofMillis(100);

    private OnDatabase() {}

    static Instance ours(Limit limit, int port) {
        JdbcDataSource source = new JdbcDataSource();
        source.setURL("jdbc:h2:tcp://127.0.0.1:" + port + "/mem:bounds");
        source.setUser("sa");
        Deadline deadline = new Deadline(TimeSource.system(), TIMEOUT);
        JdbcStorage storage = new JdbcStorage(
                source, new JdbcStorage.Settings("ratelimit_bucket", url -> true, 8, TIMEOUT, "bounds", ""), deadline);
        storage.selfTest();
        return OnRedis.closing(
                InMemory.ours(limit, OnRedis.failover("the database", storage.store(), deadline), Duration.ZERO),
                storage::close);
    }
}
