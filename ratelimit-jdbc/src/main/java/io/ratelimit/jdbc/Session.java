package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.jdbc.JdbcStorage.PostgresSource;
import io.ratelimit.remote.Deadline;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** A connection to the database, with the settings of the limiter. For one thread at a time. */
final class Session {

    /** There are three statements for single buckets, and one for each number of buckets that calls need together. */
    private static final int MAX_STATEMENTS = 32;

    private static final int RESET_MILLIS = 1_000;

    private final Map<String, PreparedStatement> statements = new HashMap<>();
    private final Connection connection;
    private final Dialect dialect;
    private final @Nullable Settings original;
    private final long openedAt = System.nanoTime();
    private long restsSince = openedAt;
    private boolean usable = true;
    private @Nullable BackendException lost;

    /** The settings of a connection before it was set up. */
    private record Settings(int timeout, boolean autoCommit, int isolation) {}

    /** @param original the settings to restore when the connection is closed; null if there are none */
    private Session(Connection connection, Dialect dialect, @Nullable Settings original) {
        this.connection = connection;
        this.dialect = dialect;
        this.original = original;
    }

    /**
     * Opens a connection. The server ends a statement somewhat before the timeout: then the connection may be used again, which
     * it may not if this process stops reading.
     */
    static Session open(DataSource source, Duration timeout) throws SQLException {
        return source instanceof PostgresSource postgres
                ? withOptions(postgres, timeout)
                : of(source.getConnection(), timeout);
    }

    /** Sets nothing, since a pooler may give the session of the server to another connection after each transaction. */
    private static Session withOptions(PostgresSource source, Duration timeout) throws SQLException {
        Connection connection = connect(source, Dialect.postgresOptions(serverMillis(timeout)));
        try {
            setNetworkTimeout(connection, timeout);
            return new Session(connection, Dialect.POSTGRESQL, null);
        } catch (SQLException | RuntimeException failed) {
            connection.close();
            throw failed;
        }
    }

    private static Connection connect(PostgresSource source, String options) throws SQLException {
        try {
            return source.getConnection(options);
        } catch (SQLException failed) {
            if (JdbcFailures.isRefusedByPooler(failed)) {
                throw JdbcFailures.ofPooler(failed);
            }
            throw failed;
        }
    }

    /** Sets up a new connection. */
    static Session of(Connection connection, Duration timeout) throws SQLException {
        try {
            int networkTimeout = setNetworkTimeout(connection, timeout);
            Dialect dialect = Dialect.of(connection.getMetaData());
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(true);
            Settings original = new Settings(networkTimeout, autoCommit, connection.getTransactionIsolation());
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            execute(dialect.settings(serverMillis(timeout)), connection);
            return new Session(connection, dialect, original);
        } catch (IllegalArgumentException unknown) {
            connection.close();
            throw new BackendException(String.valueOf(unknown.getMessage()), unknown, true);
        } catch (SQLException | RuntimeException failed) {
            connection.close();
            throw failed;
        }
    }

    private static long serverMillis(Duration timeout) {
        return Math.max(timeout.toMillis() * 9 / 10, 1);
    }

    private static void execute(List<String> commands, Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String command : commands) {
                statement.execute(command);
            }
        }
    }

    /** Returns the timeout before. Without a timeout, a call that the database never answers would not end. */
    private static int setNetworkTimeout(Connection connection, Duration timeout) throws SQLException {
        try {
            int before = connection.getNetworkTimeout();
            connection.setNetworkTimeout(Runnable::run, (int) Math.max(timeout.toMillis(), 1));
            return before;
        } catch (SQLFeatureNotSupportedException | AbstractMethodError unsupported) {
            throw new BackendException(
                    "the driver can't end a call that the database doesn't answer: its connections lack setNetworkTimeout",
                    unsupported,
                    true);
        }
    }

    Dialect dialect() {
        return dialect;
    }

    Connection connection() {
        return connection;
    }

    /** Returns a statement that ends by the deadline. It stays open for later calls, as to prepare it again takes time. */
    PreparedStatement prepare(String sql, Deadline.Call call) throws SQLException {
        limit(call);
        PreparedStatement known = statements.get(sql);
        if (known != null) {
            return known;
        }
        if (statements.size() == MAX_STATEMENTS) {
            for (PreparedStatement statement : statements.values()) {
                statement.close();
            }
            statements.clear();
        }
        PreparedStatement prepared = connection.prepareStatement(sql);
        statements.put(sql, prepared);
        return prepared;
    }

    /** Has the next command end by the deadline. */
    void limit(Deadline.Call call) throws SQLException {
        long left = TimeUnit.NANOSECONDS.toMillis(call.leftNanos());
        if (left <= 0) {
            throw new SQLTimeoutException("there is no time left for a statement", JdbcFailures.STATEMENT_CANCELLED);
        }
        setTimeout(left);
    }

    private void setTimeout(long millis) throws SQLException {
        connection.setNetworkTimeout(Runnable::run, (int) millis);
    }

    /** Returns the failure of a call, and records whether this connection may be used again. */
    BackendException failed(SQLException error, Deadline.Call call) {
        boolean late = JdbcFailures.isLate(error);
        boolean refused = JdbcFailures.isRefused(error) && !JdbcFailures.isMissingTable(error);
        BackendException failure = late ? call.late(error) : JdbcFailures.of(error);
        usable &= (refused || JdbcFailures.isCancelled(error)) && !isInTransaction();
        if (!late && !refused) {
            lost = failure;
        }
        return failure;
    }

    /** Executes a statement without effect. Returns its failure; null if the connection works. */
    @Nullable
    BackendException probe(Deadline.Call call) {
        try {
            prepare(dialect.probe(), call).execute();
            return null;
        } catch (SQLException failed) {
            return failed(failed, call);
        } catch (RuntimeException | Error failed) {
            discard();
            close();
            throw failed;
        }
    }

    void rest() {
        restsSince = System.nanoTime();
    }

    /** Returns the time since the last use. */
    long restedNanos() {
        return System.nanoTime() - restsSince;
    }

    /** Returns when the connection was opened, as {@link System#nanoTime}. */
    long openedAt() {
        return openedAt;
    }

    void discard() {
        usable = false;
    }

    boolean isUsable() {
        return usable;
    }

    /** Returns the failure by which others may have failed too; null if there is none. */
    @Nullable
    BackendException lost() {
        return lost;
    }

    private boolean isInTransaction() {
        try {
            return !connection.getAutoCommit();
        } catch (SQLException closed) {
            return true;
        }
    }

    /**
     * Takes the settings back, since a pool of the application may own the connection. Rolls back what isn't committed, as the
     * drivers of some databases would commit it. An unusable connection is cut off, without a word to a server that may be gone.
     */
    void close() {
        try (Connection closing = connection) {
            if (!usable) {
                closing.abort(Runnable::run);
            }
            if (!closing.isClosed()) {
                setTimeout(RESET_MILLIS);
                if (!closing.getAutoCommit()) {
                    closing.rollback();
                }
                if (original != null) {
                    restore(original, closing);
                }
            }
        } catch (SQLException closed) {
            usable = false;
        }
    }

    private void restore(Settings settings, Connection closing) throws SQLException {
        execute(dialect.resets(), closing);
        closing.setTransactionIsolation(settings.isolation);
        closing.setAutoCommit(settings.autoCommit);
        setTimeout(settings.timeout);
    }
}
