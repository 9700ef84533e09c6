package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.JdbcStorage.MissingTableException;
import io.ratelimit.jdbc.JdbcStorage.Settings;
import io.ratelimit.remote.Deadline.CongestedException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import javax.sql.DataSource;
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

    /** The deadline, plus a margin for a busy machine. */
    private static final Duration GENEROUS = TIMEOUT.plusMillis(400);

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(10), "user");
    private static final Charge ALICE = Charge.of(POLICY, "alice", 1);

    private final String table = TestDatabase.newTable();

    private JdbcStorage storage(DataSource source, int connections, boolean create) {
        return new JdbcStorage(
                source,
                new Settings(table, url -> create, connections, TIMEOUT, "shop", ""),
                TestDatabase.deadline(TIMEOUT));
    }

    /** Locks all rows, and takes until the lock is released. */
    private Connection lockRows(DataSource source) throws SQLException {
        Connection other = source.getConnection();
        other.setAutoCommit(false);
        other.createStatement().execute("SELECT * FROM " + table + " FOR UPDATE");
        return other;
    }

    /** The server ends the statements that wait: none of the late calls keeps tokens. */
    @ParameterizedTest
    @MethodSource("io.ratelimit.jdbc.TestDatabase#servers")
    void aRowThatIsLockedForThreeSecondsDelaysNoCallAndCostsNothing(DataSource source) throws Exception {
        try (JdbcStorage storage = storage(source, 8, true)) {
            storage.selfTest();
            int granted = storage.store().take(List.of(ALICE)).allowed() ? 1 : 0;
            int failed = 0;
            try (Connection locking = lockRows(source)) {
                long began = System.nanoTime();
                while (System.nanoTime() - began < 3_000_000_000L) {
                    long call = System.nanoTime();
                    BackendException late = catchThrowableOfType(
                            BackendException.class, () -> storage.store().take(List.of(ALICE)));
                    assertThat(late).isNotNull();
                    assertThat(late.isMisconfiguration()).isFalse();
                    assertThat(Duration.ofNanos(System.nanoTime() - call)).isLessThan(GENEROUS);
                    failed++;
                }
                locking.rollback();
            }
            assertThat(failed).isGreaterThan(1);
            for (int i = 0; i < 20; i++) {
                granted += storage.store().take(List.of(ALICE)).allowed() ? 1 : 0;
            }
            assertThat(granted).isEqualTo(10);
        }
    }

    @Test
    void aCallWithoutAFreeConnectionIsCongestedAndProvesNoOutage() throws Exception {
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 1, true)) {
            storage.selfTest();
            assertThat(storage.store().take(List.of(ALICE)).allowed()).isTrue();
            try (Connection locking = lockRows(TestDatabase.postgres())) {
                CompletableFuture<?> first =
                        CompletableFuture.runAsync(() -> storage.store().take(List.of(ALICE)));
                List<BackendException> failures = new java.util.ArrayList<>();
                while (!first.isDone()) {
                    failures.add(catchThrowableOfType(
                            BackendException.class, () -> storage.store().take(List.of(Charge.of(POLICY, "bob", 1)))));
                }
                assertThat(failures).hasAtLeastOneElementOfType(CongestedException.class);
                locking.rollback();
            }
        }
    }

    @Test
    void aDatabaseThatIsGoneFailsAtOnce() {
        PGSimpleDataSource gone = new PGSimpleDataSource();
        gone.setUrl("jdbc:postgresql://127.0.0.1:1/gone");
        try (JdbcStorage storage = storage(gone, 2, true)) {
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
            try (JdbcStorage storage = storage(source, 2, true)) {
                for (int i = 0; i < 5; i++) {
                    long began = System.nanoTime();
                    assertThatThrownBy(() -> storage.store().take(List.of(ALICE)))
                            .isInstanceOf(BackendException.class)
                            .isNotInstanceOf(CongestedException.class);
                    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(GENEROUS);
                }
            }
        }
    }

    @Test
    void aMissingTableNamesTheScriptThatCreatesIt() {
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 2, false)) {
            assertThatThrownBy(storage::selfTest)
                    .isInstanceOfSatisfying(MissingTableException.class, missing -> assertThat(
                                    getClass().getClassLoader().getResource(missing.script()))
                            .isNotNull())
                    .hasMessage("the table '" + table + "' doesn't exist in the database");
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
        try (JdbcStorage storage = storage(source, 2, true)) {
            storage.selfTest();
            storage.stop();
            replica.set(true);
            storage.start();
            BackendException failed = catchThrowableOfType(
                    BackendException.class, () -> storage.store().take(List.of(ALICE)));
            assertThat(failed).hasMessageContaining("read-only transaction");
            assertThat(failed.isMisconfiguration()).isTrue();
            replica.set(false);
            assertThat(storage.store().take(List.of(ALICE)).allowed()).isTrue();
        }
    }

    /** A replica, or a user of H2 without rights: the start can name what to do. */
    @ParameterizedTest
    @MethodSource("sourcesThatRefuse")
    void aTableThatCannotBeCreatedIsMissing(DataSource source, String reason) {
        try (JdbcStorage storage = storage(source, 2, true)) {
            assertThatThrownBy(storage::selfTest)
                    .isInstanceOf(MissingTableException.class)
                    .hasMessageStartingWith(
                            "the table '" + table + "' doesn't exist in the database, which refuses to create it: ")
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
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 2, true)) {
            BackendException failed = catchThrowableOfType(BackendException.class, storage::selfTest);
            assertThat(failed)
                    .hasMessageContaining("column \"expires\" is of type bigint but expression is of type timestamp");
            assertThat(failed.isMisconfiguration()).isTrue();
        }
    }

    /** As at a checkpoint of CRaC. */
    @Test
    void aStoppedStorageHasNoConnectionAndAStartedOneWorksAgain() {
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 2, true)) {
            storage.selfTest();
            assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(9);
            storage.stop();
            assertThatThrownBy(() -> storage.store().take(List.of(ALICE)))
                    .isInstanceOf(BackendException.class)
                    .hasMessage("the connections to the database are closed");
            storage.start();
            storage.selfTest();
            assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(8);
        }
    }

    @Test
    void theTableIsCreatedOnce() {
        DataSource h2 = TestDatabase.h2();
        for (int i = 0; i < 2; i++) {
            try (JdbcStorage storage = storage(h2, 2, true)) {
                storage.selfTest();
                assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(9 - i);
            }
        }
    }
}
