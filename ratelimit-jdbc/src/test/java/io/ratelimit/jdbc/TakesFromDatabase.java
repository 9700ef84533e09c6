package io.ratelimit.jdbc;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Threads;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.JdbcStorage.Settings;
import io.ratelimit.remote.PatientAwaits;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.postgresql.ds.PGSimpleDataSource;

/** A separate process that takes from one bucket in several threads, and prints how many tokens it took. */
final class TakesFromDatabase {

    static final long CAPACITY = 1_000;
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(CAPACITY));
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int THREADS = 4;

    private TakesFromDatabase() {}

    /**
     * Begins when it reads a line.
     *
     * @param arguments URL, table
     */
    public static void main(String[] arguments) throws Exception {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(arguments[0]);
        Settings settings = new Settings(arguments[1], url -> true, THREADS, PATIENCE, "shop", "");
        try (JdbcStorage storage = new JdbcStorage(source, settings, TestDatabase.deadline(PATIENCE))) {
            PatientAwaits.awaitSelfTest(storage);
            System.out.println("ready");
            System.in.read();
            LongAdder taken = new LongAdder();
            Threads.run(THREADS, thread -> {
                for (long i = 0; i < 4 * CAPACITY / 5 / THREADS; i++) {
                    if (storage.store().take(List.of(Charge.of(POLICY, "", 1))).allowed()) {
                        taken.increment();
                    }
                }
            });
            System.out.println(taken.sum());
        }
    }
}
