package io.ratelimit.jdbc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimit.BackendException;
import io.ratelimit.jdbc.BucketTable.Write;
import io.ratelimit.jdbc.JdbcStorage.PostgresSource;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.KeyHash;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Which connections are used again, and in which state a connection of the application's pool returns to it. */
@Tag("slow")
class ConnectionPoolTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final BucketTable table = new BucketTable(TestDatabase.newTable());
    private final AtomicInteger opened = new AtomicInteger();
    private final DataSource source = TestDatabase.postgres();

    @AutoClose
    private Connection connection;

    @BeforeEach
    void connect() throws SQLException {
        connection = source.getConnection();
    }

    private static Deadline.Call call() {
        return Deadline.Call.within(TIMEOUT, JdbcFailures::of);
    }

    /** Returns a pool of the application with one connection. */
    private DataSource pool() {
        Connection pooled = (Connection) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    try {
                        return method.getName().equals("close") ? null : method.invoke(connection, arguments);
                    } catch (InvocationTargetException failed) {
                        throw failed.getCause();
                    }
                });
        return new PGSimpleDataSource() {
            @Override
            public Connection getConnection() {
                opened.incrementAndGet();
                return pooled;
            }
        };
    }

    private static ConnectionPool pool(DataSource source, int size, Duration timeout, Duration longestOpening) {
        return new ConnectionPool(source, size, timeout, longestOpening, TIMEOUT, (session, call) -> true);
    }

    /** Returns the options that the session has in place of the defaults. */
    private List<String> options() throws SQLException {
        String changed = "SELECT name FROM pg_settings WHERE source = 'session' AND name IN"
                + " ('statement_timeout', 'synchronous_commit') ORDER BY name";
        List<String> names = new ArrayList<>();
        try (ResultSet shown = connection.createStatement().executeQuery(changed)) {
            while (shown.next()) {
                names.add(shown.getString(1));
            }
        }
        return names;
    }

    private void fail(ConnectionPool connections, SQLException error) {
        Deadline.Call call = call();
        assertThatThrownBy(() -> connections.with(call, (session, sameCall) -> {
                    throw error;
                }))
                .isInstanceOf(BackendException.class);
    }

    @Test
    void aConnectionOfThePoolOfTheApplicationReturnsWithoutSettings() throws Exception {
        connection.setAutoCommit(false);
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        ConnectionPool connections = TestDatabase.pool(pool(), 1, TIMEOUT);
        connections.fill(call());
        assertThat(options()).containsExactly("statement_timeout", "synchronous_commit");
        assertThat(connection.getTransactionIsolation()).isEqualTo(Connection.TRANSACTION_READ_COMMITTED);
        connections.stop();
        assertThat(connection.getAutoCommit()).isFalse();
        assertThat(connection.getTransactionIsolation()).isEqualTo(Connection.TRANSACTION_SERIALIZABLE);
        assertThat(options()).isEmpty();
        assertThat(connection.getNetworkTimeout()).isZero();
    }

    /** A pooler would give the session to other applications, and refuses options. */
    @Test
    void aConnectionThatGetsOptionsIsNeverSet() throws Exception {
        ConnectionPool connections = TestDatabase.pool(new WithOptions(), 1, TIMEOUT);
        Map<String, String> settings = connections.with(call(), (session, call) -> {
            Map<String, String> shown = new TreeMap<>();
            try (ResultSet rows = session.prepare(
                            "SELECT name, setting FROM pg_settings WHERE source = 'client' AND name ~ '_timeout$|_commit$|_isolation$'",
                            call)
                    .executeQuery()) {
                while (rows.next()) {
                    shown.put(rows.getString(1), rows.getString(2));
                }
            }
            return shown;
        });
        assertThat(settings)
                .isEqualTo(Map.of(
                        "default_transaction_isolation", "read committed",
                        "statement_timeout", "9000",
                        "synchronous_commit", "off"));
        connections.stop();
    }

    private static final class WithOptions extends PGSimpleDataSource implements PostgresSource {

        WithOptions() {
            setUrl(TestDatabase.url(TestDatabase.postgres()));
        }

        @Override
        public Connection getConnection(String options) throws SQLException {
            setOptions(options);
            return getConnection();
        }
    }

    /** A firewall forgets a connection that rests for minutes. */
    @Test
    void aSingleCallerUsesAllConnectionsInTurn() {
        ConnectionPool connections = TestDatabase.pool(source, 3, TIMEOUT);
        connections.fill(call());
        List<Connection> used = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            used.add(connections.with(call(), (session, call) -> session.connection()));
        }
        assertThat(used.subList(0, 3)).doesNotHaveDuplicates().isEqualTo(used.subList(3, 6));
        connections.stop();
    }

    @Test
    void anErrorThatTheServerAnsweredKeepsTheConnection() {
        TestDatabase.execute(source, "CREATE TABLE " + table.name() + " (id bytea, expires timestamp)");
        ConnectionPool connections = TestDatabase.pool(pool(), 1, TIMEOUT);
        for (int i = 0; i < 3; i++) {
            Deadline.Call call = call();
            assertThatThrownBy(() -> connections.with(
                            call,
                            (session, sameCall) -> table.read(List.of(new byte[KeyHash.BYTES]), session, sameCall)))
                    .hasMessageContaining("column b.state does not exist");
        }
        fail(connections, new SQLException("no right to this table", "42501"));
        connections.with(call(), (session, call) -> true);
        assertThat(opened).hasValue(1);
    }

    @Test
    void aCallWithoutTimeKeepsTheConnection() {
        ConnectionPool connections = TestDatabase.pool(pool(), 1, TIMEOUT);
        connections.fill(call());
        Deadline.Call late = Deadline.Call.within(Duration.ZERO, JdbcFailures::of);
        assertThatThrownBy(() -> connections.with(late, (session, call) -> session.prepare("SELECT 1", call)))
                .isInstanceOf(BackendException.class);
        connections.with(call(), (session, call) -> true);
        assertThat(opened).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(classes = {SQLFeatureNotSupportedException.class, AbstractMethodError.class})
    void aDriverThatCannotEndACallIsAMistakeAndItsConnectionIsClosed(Class<? extends Throwable> lack) throws Exception {
        Connection old = (Connection) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("setNetworkTimeout")) {
                        throw lack.getConstructor().newInstance();
                    }
                    return method.invoke(connection, arguments);
                });
        DataSource source = new PGSimpleDataSource() {
            @Override
            public Connection getConnection() {
                return old;
            }
        };
        ConnectionPool connections = TestDatabase.pool(source, 1, TIMEOUT);
        assertThatThrownBy(() -> connections.with(call(), (session, call) -> true))
                .isInstanceOfSatisfying(BackendException.class, failed -> assertThat(failed.isMisconfiguration())
                        .isTrue())
                .hasMessage("the driver can't end a call that the database doesn't answer: its connections lack"
                        + " setNetworkTimeout");
        assertThat(connection.isClosed()).isTrue();
    }

    @Test
    void aBugWithinATransactionEndsTheConnection() throws Exception {
        ConnectionPool connections = TestDatabase.pool(pool(), 1, TIMEOUT);
        assertThatThrownBy(() -> connections.with(call(), (session, call) -> {
                    throw new StackOverflowError();
                }))
                .isInstanceOf(StackOverflowError.class);
        assertThat(connection.isClosed()).isTrue();
    }

    @Test
    void aBugInTheCheckOfARestedConnectionEndsTheConnection() throws Exception {
        boolean[] broken = {false};
        DataSource source = Replacement.ofStatements(pool(), (statement, arguments) -> {
            if (broken[0]) {
                throw new IllegalStateException("a bug of the driver");
            }
            return statement;
        });
        ConnectionPool connections =
                new ConnectionPool(source, 1, TIMEOUT, TIMEOUT, Duration.ZERO, (session, call) -> true);
        connections.fill(call());
        broken[0] = true;
        assertThatThrownBy(() -> connections.with(call(), (session, call) -> true))
                .hasMessage("a bug of the driver");
        assertThat(connection.isClosed()).isTrue();
    }

    /** As a server that is frozen: it accepts connections, and answers nothing. */
    private DataSource silent(CountDownLatch answered) {
        return new PGSimpleDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                opened.incrementAndGet();
                try {
                    answered.await();
                } catch (InterruptedException ended) {
                    throw new SQLException(ended);
                }
                throw new SQLException("gone");
            }
        };
    }

    @Test
    void fewThreadsWaitForConnectionsThatNeverOpen() {
        CountDownLatch answered = new CountDownLatch(1);
        ConnectionPool connections = pool(silent(answered), 4, Duration.ofMillis(1), Duration.ofMillis(10));
        long start = System.nanoTime();
        while (opened.get() < 20
                && System.nanoTime() - start < Duration.ofMinutes(1).toNanos()) {
            assertThatThrownBy(() -> connections.with(
                            Deadline.Call.within(Duration.ofMillis(1), JdbcFailures::of), (session, call) -> true))
                    .isInstanceOf(BackendException.class);
        }
        assertThat(opened.get()).isGreaterThanOrEqualTo(20);
        // four at once, four more while those end one by one, then one in four times the longest opening
        assertThat(System.nanoTime() - start)
                .isGreaterThan(11 * Duration.ofMillis(40).toNanos());
        answered.countDown();
    }

    @Test
    void aPoolIsFilledBesideConnectionsThatNeverOpen() {
        CountDownLatch answered = new CountDownLatch(1);
        DataSource silentTwice = new PGSimpleDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                return opened.get() < 2 ? silent(answered).getConnection() : pool().getConnection();
            }
        };
        ConnectionPool connections = pool(silentTwice, 2, TIMEOUT, Duration.ofSeconds(1));
        assertThatThrownBy(() -> connections.fill(call())).isInstanceOf(BackendException.class);
        Awaitility.await().until(() -> opened.get() == 2);
        connections.fill(call());
        connections.with(call(), (session, call) -> true);
        answered.countDown();
        connections.stop();
    }

    @Test
    void aRollbackEndsByTheDeadlineOfItsCall() throws Exception {
        List<String> names = new ArrayList<>();
        Connection observed = (Connection) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    names.add(method.getName());
                    return method.invoke(connection, arguments);
                });
        TestDatabase.connections(source, table, TIMEOUT).stop(); // makes the table
        Session session = Session.of(observed, TIMEOUT);
        names.clear();
        byte[] value = {1};
        List<Write> writes = new ArrayList<>();
        for (byte id = 0; id < 2; id++) { // there is no row with these values
            byte[] row = new byte[KeyHash.BYTES];
            row[0] = id;
            writes.add(new Write(row, value, value, 0, Long.MAX_VALUE, TIMEOUT));
        }
        assertThat(table.compareAndSet(writes, session, call())).isFalse();
        assertThat(names)
                .startsWith("setNetworkTimeout", "setAutoCommit")
                .containsSequence("setNetworkTimeout", "rollback", "setAutoCommit");
    }

    @Test
    void aConnectionThatNeverOpensTakesNoPlaceForEver() throws Exception {
        CountDownLatch answered = new CountDownLatch(1);
        DataSource silentOnce = new PGSimpleDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                if (opened.incrementAndGet() == 1) {
                    try {
                        answered.await();
                    } catch (InterruptedException ended) {
                        throw new SQLException(ended);
                    }
                }
                return source.getConnection();
            }
        };
        ConnectionPool connections = pool(silentOnce, 1, TIMEOUT, Duration.ofSeconds(1));
        assertThatThrownBy(() -> connections.with(call(), (session, call) -> true))
                .isInstanceOf(BackendException.class);
        assertThatThrownBy(() -> connections.with(call(), (session, call) -> {
                    throw new IllegalStateException("on the second connection");
                }))
                .hasMessage("on the second connection");
        answered.countDown();
        connections.stop();
    }
}
