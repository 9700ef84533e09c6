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
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.PatientAwaits;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** A PostgreSQL that answers but can't be used for a while, or that has closed connections meanwhile. */
@Tag("slow")
class RefusedConnectionTests {

    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Duration PAUSE = Duration.ofMillis(500);
    private static final Charge ALICE =
            Charge.of(ThrottlePolicy.of("api", BucketSpec.of("1/1d").withCapacity(1_000), "user"), "alice", 1);

    private final String table = TestDatabase.newTable();
    private final AtomicInteger opened = new AtomicInteger();
    private volatile @Nullable SQLException refusal;
    private volatile boolean replica;

    private final PGSimpleDataSource source = new PGSimpleDataSource() {
        @Override
        public Connection getConnection() throws SQLException {
            opened.incrementAndGet();
            SQLException refused = refusal;
            if (refused != null) {
                throw refused;
            }
            Connection connection = TestDatabase.postgres().getConnection();
            if (replica) {
                connection.createStatement().execute("SET default_transaction_read_only = on");
            }
            return connection;
        }
    };

    private JdbcStorage storage(boolean create) {
        return new JdbcStorage(
                source, new Settings(table, url -> create, 4, PATIENCE, "shop", ""), TestDatabase.deadline(PATIENCE));
    }

    private static BackendException failure(JdbcStorage storage) {
        return catchThrowableOfType(
                BackendException.class, () -> storage.store().take(List.of(ALICE)));
    }

    /** Makes calls that fail as misconfigurations, and allows one connection now and one after each pause. */
    private void assertFewConnections(JdbcStorage storage, String reason) {
        int before = opened.get();
        long began = System.nanoTime();
        for (int i = 0; i < 100; i++) {
            BackendException failed = failure(storage);
            assertThat(failed).hasMessageContaining(reason);
            assertThat(failed.isMisconfiguration()).isTrue();
        }
        long pauses = (System.nanoTime() - began) / PAUSE.toNanos();
        assertThat(opened.get() - before).isBetween(0, (int) (2 + pauses)); // the janitor may open one
    }

    private static void awaitTake(JdbcStorage storage) {
        Awaitility.await()
                .ignoreExceptionsInstanceOf(BackendException.class)
                .until(() -> storage.store().take(List.of(ALICE)).allowed());
    }

    /** The password was changed: the server would lock the account after some more attempts. */
    @Test
    void aRefusedLoginIsRepeatedOnlyAfterAPause() {
        try (JdbcStorage storage = storage(true)) {
            refusal = new SQLException("password authentication failed", "28P01");
            assertFewConnections(storage, "password authentication failed");
            assertThat(opened.get()).isPositive();
            refusal = null;
            awaitTake(storage);
        }
    }

    /** Its failures must open the circuit breaker. */
    @Test
    void aDatabaseThatIsGoneAfterARefusalIsAnOutage() {
        try (JdbcStorage storage = storage(true)) {
            refusal = new SQLException("password authentication failed", "28P01");
            assertThat(failure(storage).isMisconfiguration()).isTrue();
            refusal = new SQLException("connection refused", "08001");
            Awaitility.await().until(() -> !failure(storage).isMisconfiguration());
            for (int i = 0; i < 10; i++) {
                assertThat(failure(storage).isMisconfiguration()).isFalse();
            }
        }
    }

    /** After a failover, or with a full disk. Reads would succeed. */
    @Test
    void aServerThatDoesNotWriteGetsFewConnections() {
        try (JdbcStorage storage = storage(true)) {
            PatientAwaits.awaitSelfTest(storage);
            storage.stop();
            replica = true;
            storage.start();
            assertFewConnections(storage, "read-only transaction");
            replica = false;
            awaitTake(storage);
        }
    }

    @Test
    void aTableIsCreatedAlsoWhereTheDatabaseWasDownAtTheStart() {
        try (JdbcStorage storage = storage(true)) {
            refusal = new SQLException("connection refused", "08001");
            assertThatThrownBy(storage::selfTest).hasMessageContaining("connection refused");
            refusal = null;
            awaitTake(storage);
        }
    }

    @Test
    void aTableThatIsDroppedLaterIsCreatedAgain() {
        try (JdbcStorage storage = storage(true)) {
            PatientAwaits.awaitSelfTest(storage);
            TestDatabase.execute(TestDatabase.postgres(), "DROP TABLE " + table);
            awaitTake(storage);
        }
    }

    /** The log shows the message each ten seconds. */
    @Test
    void aTableThatIsMissingLaterNamesItsScriptUntilItIsThere() {
        try (JdbcStorage storage = storage(false)) {
            refusal = new SQLException("connection refused", "08001");
            assertThatThrownBy(storage::selfTest).hasMessageContaining("connection refused");
            refusal = null;
            assertThat(failure(storage))
                    .isInstanceOf(MissingTableException.class)
                    .hasMessageContaining("the script 'io/ratelimit/jdbc/schema-postgresql.sql'");
            assertFewConnections(storage, "doesn't exist in the database");
            TestDatabase.connections(TestDatabase.postgres(), new BucketTable(table), PATIENCE)
                    .stop();
            awaitTake(storage);
        }
    }

    /** A server or a pooler closes connections that rest. */
    @Test
    void aConnectionThatTheServerClosedFailsNoCall() throws SQLException {
        String name = table; // of the application, as the server knows it
        PGSimpleDataSource named = new PGSimpleDataSource();
        named.setUrl(TestDatabase.url(TestDatabase.postgres()));
        named.setApplicationName(name);
        ConnectionPool connections =
                new ConnectionPool(named, 3, PATIENCE, PATIENCE, Duration.ZERO, (session, call) -> true);
        connections.fill(call());
        try (Connection other = TestDatabase.postgres().getConnection()) {
            String sessions = " FROM pg_stat_activity WHERE application_name = '" + name + "'";
            other.createStatement().execute("SELECT pg_terminate_backend(pid)" + sessions);
            Awaitility.await().until(() -> {
                try (ResultSet rest = other.createStatement().executeQuery("SELECT count(*)" + sessions)) {
                    return rest.next() && rest.getInt(1) == 0;
                }
            });
        }
        for (int i = 0; i < 4; i++) {
            boolean answered = connections.with(
                    call(), (session, call) -> session.prepare("SELECT 1", call).execute());
            assertThat(answered).isTrue();
        }
        connections.stop();
    }

    private static Deadline.Call call() {
        return Deadline.Call.within(PATIENCE, JdbcFailures::of);
    }
}
