package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.jdbc.JdbcStorage.CreateTable;
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
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** A PostgreSQL that locks rows, is slow, is gone or lacks the table. */
@Tag("slow")
class JdbcFaultTests {

    private static final Duration TIMEOUT = Duration.ofMillis(200);

    /** The deadline, plus a margin for a busy machine. */
    private static final Duration GENEROUS = Duration.ofMillis(200 + 400);

    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(10), "user");
    private static final Charge ALICE = Charge.of(POLICY, "alice", 1);

    private final String table = TestDatabase.newTable();

    private JdbcStorage storage(DataSource source, int connections, CreateTable create) {
        return new JdbcStorage(
                source, new Settings(table, create, connections, TIMEOUT, "shop", ""), TestDatabase.deadline(TIMEOUT));
    }

    /** Locks all rows, and takes until the lock is released. */
    private Connection lockRows() throws SQLException {
        Connection other = TestDatabase.postgres().getConnection();
        other.setAutoCommit(false);
        other.createStatement().execute("SELECT * FROM " + table + " FOR UPDATE");
        return other;
    }

    @Test
    void aRowThatIsLockedForASecondDelaysNoCallAndGrantsNothingTwice() throws Exception {
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 8, CreateTable.ALWAYS)) {
            storage.selfTest();
            int granted = storage.store().take(List.of(ALICE)).allowed() ? 1 : 0;
            int failed = 0;
            try (Connection locking = lockRows()) {
                long began = System.nanoTime();
                while (System.nanoTime() - began < 1_000_000_000) {
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
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 1, CreateTable.ALWAYS)) {
            storage.selfTest();
            assertThat(storage.store().take(List.of(ALICE)).allowed()).isTrue();
            try (Connection locking = lockRows()) {
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
        try (JdbcStorage storage = storage(gone, 2, CreateTable.ALWAYS)) {
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
            try (JdbcStorage storage = storage(source, 2, CreateTable.ALWAYS)) {
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
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 2, CreateTable.EMBEDDED)) {
            assertThatThrownBy(storage::selfTest)
                    .isInstanceOfSatisfying(MissingTableException.class, missing -> assertThat(
                                    getClass().getClassLoader().getResource(missing.script()))
                            .isNotNull())
                    .hasMessage("the table '" + table + "' doesn't exist");
            BackendException failed = catchThrowableOfType(
                    BackendException.class, () -> storage.store().take(List.of(ALICE)));
            assertThat(failed.isMisconfiguration()).isTrue();
        }
    }

    /** As at a checkpoint of CRaC. */
    @Test
    void aStoppedStorageHasNoConnectionAndAStartedOneWorksAgain() {
        try (JdbcStorage storage = storage(TestDatabase.postgres(), 2, CreateTable.ALWAYS)) {
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
    void theTableIsCreatedOnceAndInADatabaseInMemoryByItself() {
        DataSource h2 = TestDatabase.h2();
        for (int i = 0; i < 2; i++) {
            try (JdbcStorage storage = storage(h2, 2, CreateTable.EMBEDDED)) {
                storage.selfTest();
                assertThat(storage.store().take(List.of(ALICE)).remaining()).isEqualTo(9 - i);
            }
        }
    }
}
