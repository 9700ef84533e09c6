package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.JdbcStorage.MissingTableException;
import io.ratelimit.jdbc.JdbcStorage.Settings;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.Deadline.CongestedException;
import io.ratelimit.remote.PatientAwaits;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.awaitility.Awaitility;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A PostgreSQL that locks rows, is slow, is gone or lacks the table. */
@Tag("slow")
class JdbcFaultTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    /** The latest end of a call whose thread wakes in time. A call that ends later is congested, as the process is. */
    private static final Duration ON_TIME = TIMEOUT.plus(TIMEOUT.dividedBy(5));

    /** For calls that aren't late. */
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(10), "user");
    private static final Charge ALICE = Charge.of(POLICY, "alice", 1);
    private static final Charge BOB = Charge.of(POLICY, "bob", 1);

    private final String table = TestDatabase.newTable();

    private JdbcStorage storage(DataSource source, boolean create, Duration timeout) {
        return new JdbcStorage(
                source, new Settings(table, url -> create, 2, timeout, "shop", ""), TestDatabase.deadline(timeout));
    }

    private JdbcStorage storage(DataSource source) {
        return storage(source, true, PATIENCE);
    }

    private int granted(DataSource source, int takes) {
        int granted = 0;
        try (JdbcStorage storage = storage(source)) {
            PatientAwaits.awaitSelfTest(storage);
            for (int i = 0; i < takes; i++) {
                granted += storage.store().take(List.of(ALICE)).allowed() ? 1 : 0;
            }
        }
        return granted;
    }

    /** Makes calls that must fail, and returns whether all of them ended on time. One that didn't may be congested. */
    private boolean failsOnTime(DataSource source, int calls) {
        boolean onTime = true;
        try (JdbcStorage storage = storage(source, true, TIMEOUT)) {
            catchThrowable(() -> storage.store().take(List.of(BOB))); // opens a connection, if that is possible
            for (int i = 0; i < calls; i++) {
                long began = System.nanoTime();
                BackendException failed = catchThrowableOfType(
                        BackendException.class, () -> storage.store().take(List.of(ALICE)));
                boolean callOnTime = System.nanoTime() - began <= ON_TIME.toNanos();
                assertThat(failed).isNotNull();
                assertThat(failed.isMisconfiguration()).isFalse();
                assertThat(callOnTime && failed instanceof CongestedException).isFalse();
                onTime &= callOnTime;
            }
        }
        return onTime;
    }

    /** Fails if calls are late without a reason: a busy machine delays only some of them. */
    private static void assertOnTime(BooleanSupplier calls) {
        assertThat(IntStream.range(0, 10)).anyMatch(attempt -> calls.getAsBoolean());
    }

    /** Locks all rows until the connection is closed. */
    private Connection lockRows(DataSource source) throws SQLException {
        Connection other = source.getConnection();
        other.setAutoCommit(false);
        other.createStatement().execute("SELECT * FROM " + table + " FOR UPDATE");
        return other;
    }

    /**
     * Awaits that the server has ended all writes to the table, and in PostgreSQL the connections that made them. Returns whether
     * that was soon.
     */
    private boolean endOnTime(DataSource source) {
        String writes = source instanceof PGSimpleDataSource
                ? "pg_stat_activity WHERE query ~ '\\m" + table + "\\M' AND query NOT LIKE '%FOR UPDATE'"
                        + " AND pid <> pg_backend_pid()"
                : "information_schema.processlist WHERE info LIKE 'UPDATE " + table + " %'";
        long began = System.nanoTime();
        Awaitility.await().until(() -> {
            try (Connection watching = source.getConnection();
                    ResultSet rows = watching.createStatement().executeQuery("SELECT count(*) FROM " + writes)) {
                return rows.next() && rows.getInt(1) == 0;
            }
        });
        return System.nanoTime() - began < TIMEOUT.toNanos();
    }

    /** The server ends the statements that wait: none of the late calls keeps tokens. */
    @ParameterizedTest
    @MethodSource("io.ratelimit.jdbc.TestDatabase#servers")
    void aRowThatStaysLockedDelaysNoCallLongerAndCostsNothing(DataSource source) throws Exception {
        int granted = granted(source, 1);
        try (Connection locking = lockRows(source)) {
            assertOnTime(() -> failsOnTime(source, 3) && endOnTime(source));
            locking.rollback();
        }
        assertThat(granted + granted(source, 20)).isEqualTo(10);
    }

    @Test
    void aCallWithoutAFreeConnectionIsCongestedAndProvesNoOutage() throws Exception {
        ConnectionPool connections = TestDatabase.pool(TestDatabase.postgres(), 1, PATIENCE);
        CompletableFuture<Boolean> begun = new CompletableFuture<>();
        CompletableFuture<Boolean> congested = new CompletableFuture<>();
        Thread other =
                new Thread(() -> connections.with(Deadline.Call.within(PATIENCE, JdbcFailures::of), (session, call) -> {
                    begun.complete(true);
                    return congested.join();
                }));
        other.setDaemon(true);
        other.start();
        begun.get(1, TimeUnit.MINUTES);
        JdbcBucketStore store = TestDatabase.store(
                connections,
                new BucketTable(table),
                new TableIds("shop", ""),
                TIMEOUT,
                () -> JdbcBucketStore.SERVER_TIME);
        try {
            assertThatThrownBy(() -> store.take(List.of(ALICE))).isInstanceOf(CongestedException.class);
        } finally {
            congested.complete(true);
        }
        other.join(60_000);
        connections.stop();
    }

    @Test
    void aDatabaseThatIsGoneFailsAtOnce() {
        PGSimpleDataSource gone = new PGSimpleDataSource();
        gone.setUrl("jdbc:postgresql://127.0.0.1:1/gone");
        try (JdbcStorage storage = storage(gone)) {
            for (int i = 0; i < 10; i++) {
                assertThatThrownBy(() -> storage.store().take(List.of(ALICE)))
                        .isInstanceOf(BackendException.class)
                        .isNotInstanceOf(CongestedException.class)
                        .hasMessageContaining("the database failed");
            }
        }
    }

    /** Connections that are being opened take no call's place. */
    @Test
    void aDatabaseThatDoesNotAnswerIsLateAndNotCongested() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            PGSimpleDataSource source = new PGSimpleDataSource();
            source.setUrl("jdbc:postgresql://127.0.0.1:" + silent.getLocalPort() + "/silent");
            assertOnTime(() -> failsOnTime(source, 5));
        }
    }

    @Test
    void aMissingTableNamesTheScriptThatCreatesIt() {
        try (JdbcStorage storage = storage(TestDatabase.postgres(), false, PATIENCE)) {
            assertThatThrownBy(() -> PatientAwaits.awaitSelfTest(storage))
                    .isInstanceOf(MissingTableException.class)
                    .hasMessage("the table '" + table + "' doesn't exist in the database; the script"
                            + " 'io/ratelimit/jdbc/schema-postgresql.sql' of ratelimit-jdbc creates it");
            BackendException failed = catchThrowableOfType(
                    BackendException.class, () -> storage.store().take(List.of(ALICE)));
            assertThat(failed.isMisconfiguration()).isTrue();
        }
    }

    /** A replica, or a server that was the primary until a failover: the URL may lead to another one since. */
    @Test
    void aServerThatDoesNotWriteIsAMistakeUntilAnotherConnectionLeadsToThePrimary() {
        AtomicBoolean replica = new AtomicBoolean();
        DataSource source = new PGSimpleDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = TestDatabase.postgres().getConnection();
                if (replica.get()) {
                    connection.createStatement().execute("SET default_transaction_read_only = on");
                }
                return connection;
            }
        };
        try (JdbcStorage storage = storage(source)) {
            PatientAwaits.awaitSelfTest(storage);
            storage.stop();
            replica.set(true);
            storage.start();
            BackendException failed = catchThrowableOfType(
                    BackendException.class, () -> storage.store().take(List.of(ALICE)));
            assertThat(failed).hasMessageContaining("read-only transaction");
            assertThat(failed.isMisconfiguration()).isTrue();
            replica.set(false);
            Awaitility.await() // half a second
                    .ignoreExceptionsMatching(refused -> refused.getMessage().equals(failed.getMessage()))
                    .until(() -> storage.store().take(List.of(ALICE)).allowed());
        }
    }

    /** As after a failover: the connections lead to the former primary, and new ones to the other server. */
    @Test
    void aServerThatWritesNoMoreFailsOneCallAndNotOneForEachConnection() throws SQLException {
        List<Connection> opened = new CopyOnWriteArrayList<>();
        DataSource source = new PGSimpleDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = TestDatabase.postgres().getConnection();
                opened.add(connection);
                return connection;
            }
        };
        try (JdbcStorage storage = storage(source)) {
            PatientAwaits.awaitSelfTest(storage);
            assertThat(storage.store().take(List.of(ALICE)).allowed()).isTrue();
            List<Connection> kept = new ArrayList<>();
            for (Connection connection : opened) {
                if (!connection.isClosed()) {
                    connection.createStatement().execute("SET default_transaction_read_only = on");
                    kept.add(connection);
                }
            }
            assertThat(kept).hasSizeGreaterThanOrEqualTo(2); // and perhaps one that removes expired rows
            assertThatThrownBy(() -> storage.store().take(List.of(ALICE)))
                    .hasMessageContaining("read-only transaction");
            for (Connection connection : kept) {
                Awaitility.await().until(connection::isClosed);
            }
            Awaitility.await() // half a second, as these connections are young
                    .ignoreExceptionsInstanceOf(BackendException.class)
                    .until(() -> storage.store().take(List.of(ALICE)).allowed());
        }
    }

    /** A replica, or a user of H2 without rights: the start can name what to do. */
    @ParameterizedTest
    @MethodSource("sourcesThatRefuse")
    void aTableThatCannotBeCreatedIsMissing(DataSource source, String reason) {
        try (JdbcStorage storage = storage(source)) {
            assertThatThrownBy(() -> PatientAwaits.awaitSelfTest(storage))
                    .isInstanceOf(MissingTableException.class)
                    .hasMessageStartingWith("the table '" + table
                            + "' doesn't exist in the database, which refuses to create it by the")
                    .hasMessageContaining(reason);
        }
    }

    static Stream<Arguments> sourcesThatRefuse() {
        PGSimpleDataSource replica = new PGSimpleDataSource();
        replica.setUrl(TestDatabase.url(TestDatabase.postgres()));
        replica.setOptions("-c default_transaction_read_only=on");
        DataSource h2 = TestDatabase.h2();
        TestDatabase.execute(h2, "CREATE USER guest PASSWORD ''");
        JdbcDataSource guest = new JdbcDataSource();
        guest.setUrl(((JdbcDataSource) h2).getUrl().replace(";DB_CLOSE_DELAY=-1", ""));
        guest.setUser("guest");
        return Stream.of(
                Arguments.of(replica, "cannot execute CREATE TABLE in a read-only transaction"),
                Arguments.of(guest, "Not enough rights"));
    }

    @Test
    void aTableWithOtherColumnsIsAMistakeThatTheStartReports() {
        TestDatabase.execute(
                TestDatabase.postgres(),
                "CREATE TABLE " + table + " (id bytea PRIMARY KEY, state bytea NOT NULL, expires bigint NOT NULL)");
        try (JdbcStorage storage = storage(TestDatabase.postgres())) {
            BackendException failed =
                    catchThrowableOfType(BackendException.class, () -> PatientAwaits.awaitSelfTest(storage));
            assertThat(failed)
                    .hasMessageContaining("column \"expires\" is of type bigint but expression is of type timestamp");
            assertThat(failed.isMisconfiguration()).isTrue();
        }
    }

    /** As at a checkpoint of CRaC. */
    @Test
    void aStoppedStorageHasNoConnectionAndAStartedOneWorksAgain() {
        try (JdbcStorage storage = storage(TestDatabase.postgres())) {
            PatientAwaits.awaitSelfTest(storage);
            assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(9);
            storage.stop();
            assertThatThrownBy(() -> storage.store().take(List.of(ALICE)))
                    .isInstanceOf(BackendException.class)
                    .hasMessage("the connections to the database are closed");
            storage.start();
            PatientAwaits.awaitSelfTest(storage);
            assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(8);
        }
    }

    @Test
    void theTableIsCreatedOnce() {
        DataSource h2 = TestDatabase.h2();
        for (int i = 0; i < 2; i++) {
            try (JdbcStorage storage = storage(h2)) {
                PatientAwaits.awaitSelfTest(storage);
                assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(9 - i);
            }
        }
    }
}
