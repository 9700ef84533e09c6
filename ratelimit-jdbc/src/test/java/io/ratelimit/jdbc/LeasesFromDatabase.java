package io.ratelimit.jdbc;

import io.ratelimit.BucketStore;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.jdbc.JdbcStorage.Settings;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.PatientAwaits;
import io.ratelimit.remote.lease.RecordedTakes;
import java.nio.file.Path;
import java.time.Duration;
import org.postgresql.ds.PGSimpleDataSource;

/** A separate process that takes from one bucket by leases, until its input has a second line. */
final class LeasesFromDatabase {

    private static final Duration TIMEOUT = Duration.ofMillis(500);

    private LeasesFromDatabase() {}

    /** @param arguments URL, table, file */
    public static void main(String[] arguments) throws Exception {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(arguments[0]);
        Settings settings = new Settings(arguments[1], url -> true, 4, TIMEOUT, "shop", "");
        Deadline deadline = TestDatabase.deadline(TIMEOUT);
        try (JdbcStorage storage = new JdbcStorage(source, settings, deadline)) {
            PatientAwaits.awaitSelfTest(storage);
            FailoverBucketStore store = new FailoverBucketStore(
                    "the database",
                    storage.store(),
                    BucketStore.local(new SystemTimeSource()),
                    1,
                    policy -> FailureRule.DENY,
                    deadline);
            RecordedTakes.in(Path.of(arguments[2])).take(store);
        }
    }
}
