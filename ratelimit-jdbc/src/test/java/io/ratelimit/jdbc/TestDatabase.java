package io.ratelimit.jdbc;

import io.ratelimit.SystemTimeSource;
import io.ratelimit.remote.Deadline;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.h2.jdbcx.JdbcDataSource;
import org.mariadb.jdbc.MariaDbDataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Real databases for tests: H2 in memory, and a PostgreSQL that Maven fetched, one for all tests of a JVM and gone with it. The
 * environment variable {@code RATELIMIT_TEST_POSTGRES=jdbc:postgresql://…} names another one. A MariaDB is used only if {@code
 * RATELIMIT_TEST_MARIADB=jdbc:mariadb://…?user=…} names one. Each test has a table of its own.
 */
public final class TestDatabase {

    static final String MARIADB = "RATELIMIT_TEST_MARIADB";

    /** Ten times the default, which can be too short on a busy machine. */
    static final Duration START = Duration.ofSeconds(100);

    private static final String OTHER = "RATELIMIT_TEST_POSTGRES";
    private static final AtomicInteger TABLES = new AtomicInteger();

    private TestDatabase() {}

    private static final class Postgres {
        private static final DataSource SHARED = shared();

        private static DataSource shared() {
            String other = System.getenv(OTHER);
            if (other == null) {
                EmbeddedPostgres server = startPostgres();
                Runtime.getRuntime().addShutdownHook(new Thread(() -> close(server)));
                return server.getPostgresDatabase();
            }
            PGSimpleDataSource source = new PGSimpleDataSource();
            source.setUrl(other);
            return source;
        }
    }

    /** Returns the PostgreSQL of all tests that don't stop it. */
    public static DataSource postgres() {
        return Postgres.SHARED;
    }

    /** Returns the MariaDB that the environment names. */
    static DataSource mariaDb() {
        try {
            return new MariaDbDataSource(System.getenv(MARIADB));
        } catch (SQLException malformed) {
            throw new IllegalStateException(malformed);
        }
    }

    /** Returns the databases with a server. */
    static Stream<DataSource> servers() {
        return System.getenv(MARIADB) == null ? Stream.of(postgres()) : Stream.of(postgres(), mariaDb());
    }

    /** Starts a PostgreSQL for a test that stops it. */
    public static EmbeddedPostgres startPostgres() {
        try {
            return EmbeddedPostgres.builder().setPGStartupWait(START).start();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Stops a PostgreSQL. */
    public static void close(EmbeddedPostgres server) {
        try {
            server.close();
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    /** Returns a new H2 in memory, which lasts as long as the JVM. */
    public static DataSource h2() {
        JdbcDataSource source = new JdbcDataSource();
        source.setUser("sa");
        source.setPassword("");
        source.setUrl("jdbc:h2:mem:" + newTable() + ";DB_CLOSE_DELAY=-1");
        return source;
    }

    /** Returns the URL of a database. */
    public static String url(DataSource source) {
        try (Connection connection = source.getConnection()) {
            String url = connection.getMetaData().getURL();
            return source instanceof PGSimpleDataSource postgres
                    ? url + (url.contains("?") ? "&" : "?") + "user=" + postgres.getUser()
                    : url + ";DB_CLOSE_DELAY=-1";
        } catch (SQLException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** Returns the name of a table that no other test has. */
    public static String newTable() {
        return "test" + ProcessHandle.current().pid() + "_" + TABLES.incrementAndGet();
    }

    /** Executes a statement. */
    public static void execute(DataSource source, String sql) {
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** Returns a deadline for calls outside a request: each has the whole time. */
    static Deadline deadline(Duration timeout) {
        return new Deadline(new SystemTimeSource(), timeout);
    }

    /** Returns connections that aren't checked when they are opened. */
    static ConnectionPool pool(DataSource source, int size, Duration timeout) {
        return new ConnectionPool(source, size, timeout, (session, call) -> true);
    }

    /** Returns connections with a new table. */
    static ConnectionPool connections(DataSource source, BucketTable table, Duration timeout) {
        ConnectionPool connections = pool(source, 8, timeout);
        Deadline.Call call = Deadline.Call.within(Duration.ofSeconds(30), JdbcFailures::of);
        connections.with(call, (session, sameCall) -> {
            table.create(source, session, sameCall);
            return true;
        });
        return connections;
    }

    /** Returns a store with a new table, on a clock of the test. */
    static JdbcBucketStore store(DataSource source, Duration timeout, LongSupplier micros) {
        BucketTable table = new BucketTable(newTable());
        return store(connections(source, table, timeout), table, new TableIds("test", ""), timeout, micros);
    }

    /** Returns a store whose calls all have the same time. */
    static JdbcBucketStore store(
            ConnectionPool connections, BucketTable table, TableIds ids, Duration timeout, LongSupplier micros) {
        return new JdbcBucketStore(connections, table, ids, deadline(timeout), timeout, micros);
    }
}
