package io.ratelimit.benchmarks;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.jdbc.PrimaryKeyMapper;
import io.github.bucket4j.postgresql.Bucket4jPostgreSQL;
import io.github.bucket4j.postgresql.PostgreSQLSelectForUpdateBasedProxyManager;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.JdbcStorage;
import io.ratelimit.jdbc.JdbcStorage.Settings;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Limiters in PostgreSQL, and the floor: a SELECT and an UPDATE of one row, by a connection of each thread. All have unlogged
 * tables with room for updates, asynchronous commits and at most as many connections as threads.
 */
final class DatabaseLimiters implements AutoCloseable {

    static final String FLOOR = "bare SELECT and UPDATE";
    static final String BUCKET4J = "bucket4j-postgresql";
    static final String OURS = "ratelimit, jdbc";
    static final String TWO = "ratelimit, jdbc, two instances";
    static final String LEASE = "ratelimit, jdbc, lease of 50 ms";
    static final List<String> NAMES = List.of(FLOOR, BUCKET4J, OURS, TWO, LEASE);

    private static final int CAPACITY = 10_000_000;
    private static final int CONNECTIONS = 8;
    private static final Duration TIMEOUT = Duration.ofSeconds(5);
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("10/1s").withCapacity(CAPACITY), "client");
    private static final ThrottlePolicy SHARED = ThrottlePolicy.of("shared", POLICY.spec(), "client");
    private static final ThrottlePolicy LEASED = ThrottlePolicy.of(
                    "leased", BucketSpec.of("100000000/1s").withCapacity(100_000_000), "client")
            .withLease(Duration.ofMillis(50));

    private final PGSimpleDataSource source;
    private final HikariDataSource pool;
    private final List<JdbcStorage> storages;
    private final List<BucketStore> stores;
    private final ThreadLocal<Floor> floor = ThreadLocal.withInitial(this::floor);

    /** The statements of one thread. */
    private record Floor(PreparedStatement select, PreparedStatement update) {

        boolean call(String key) {
            try {
                byte[] id = key.getBytes(StandardCharsets.UTF_8);
                select.setBytes(1, id);
                try (ResultSet row = select.executeQuery()) {
                    row.next();
                    update.setBytes(1, row.getBytes(2));
                }
                update.setBytes(2, id);
                return update.executeUpdate() == 1;
            } catch (SQLException failed) {
                throw new IllegalStateException(failed);
            }
        }
    }

    DatabaseLimiters(PGSimpleDataSource source) {
        this.source = source;
        source.setOptions("-c synchronous_commit=off");
        HikariConfig config = new HikariConfig();
        config.setDataSource(source);
        config.setMaximumPoolSize(CONNECTIONS);
        this.pool = new HikariDataSource(config);
        Deadline deadline = new Deadline(new SystemTimeSource(), TIMEOUT);
        Settings settings = new Settings("ratelimit_bucket", url -> true, CONNECTIONS, TIMEOUT, "", "");
        this.storages = Stream.generate(() -> new JdbcStorage(source, settings, deadline))
                .limit(2)
                .toList();
        this.stores = storages.stream().map(storage -> store(storage, deadline)).toList();
    }

    private static BucketStore store(JdbcStorage storage, Deadline deadline) {
        return new FailoverBucketStore(
                "the database",
                storage.store(),
                BucketStore.local(new SystemTimeSource()),
                1,
                policy -> FailureRule.DENY,
                deadline);
    }

    /** Creates the tables, and the rows of the floor. */
    void prepare(String[] keys) throws SQLException {
        storages.forEach(JdbcStorage::selfTest);
        try (Connection connection = source.getConnection()) {
            connection
                    .createStatement()
                    .execute("CREATE UNLOGGED TABLE bucket (id text PRIMARY KEY, state bytea, expires_at bigint)"
                            + " WITH (fillfactor = 50)");
            connection
                    .createStatement()
                    .execute("CREATE UNLOGGED TABLE floor (id bytea PRIMARY KEY, state bytea) WITH (fillfactor = 50)");
            PreparedStatement insert =
                    connection.prepareStatement("INSERT INTO floor VALUES (?, decode(repeat('ab', 45), 'hex'))");
            for (String key : keys) {
                insert.setBytes(1, key.getBytes(StandardCharsets.UTF_8));
                insert.addBatch();
            }
            insert.executeBatch();
        }
    }

    /** Returns all limiters by name; each returns whether it allowed the call of a key. */
    Map<String, Predicate<String>> all() {
        Map<String, Predicate<String>> all = new LinkedHashMap<>();
        all.put(FLOOR, key -> floor.get().call(key));
        all.put(BUCKET4J, bucket4j());
        all.put(OURS, key -> takes(0, POLICY, key));
        all.put(TWO, key -> takes(ThreadLocalRandom.current().nextInt(2), SHARED, key));
        all.put(LEASE, key -> takes(0, LEASED, key));
        return all;
    }

    private boolean takes(int instance, ThrottlePolicy policy, String key) {
        return stores.get(instance).take(List.of(Charge.of(policy, key, 1))).allowed();
    }

    private Floor floor() {
        try {
            Connection connection = source.getConnection();
            return new Floor(
                    connection.prepareStatement("SELECT clock_timestamp(), state FROM floor WHERE id = ?"),
                    connection.prepareStatement("UPDATE floor SET state = ? WHERE id = ?"));
        } catch (SQLException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private Predicate<String> bucket4j() {
        BucketConfiguration configuration = BucketConfiguration.builder()
                .addLimit(limit -> limit.capacity(CAPACITY).refillGreedy(10, Duration.ofSeconds(1)))
                .build();
        PostgreSQLSelectForUpdateBasedProxyManager<String> manager = Bucket4jPostgreSQL.selectForUpdateBasedBuilder(
                        pool)
                .primaryKeyMapper(PrimaryKeyMapper.STRING)
                .build();
        return key -> manager.getProxy(key, () -> configuration).tryConsume(1);
    }

    @Override
    public void close() {
        storages.forEach(JdbcStorage::close);
        pool.close();
    }
}
