package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.remote.Deadline;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A connection to the database, with the settings of the limiter. For one thread at a time. */
final class Session {

    /** There are three statements for single buckets, and one for each number of buckets that calls need together. */
    private static final int MAX_STATEMENTS = 32;

    private final Map<String, PreparedStatement> statements = new HashMap<>();
    private final Connection connection;
    private final Dialect dialect;
    private final boolean hasNetworkTimeout;
    private boolean usable = true;
    private boolean lost;

    private Session(Connection connection, Dialect dialect, boolean hasNetworkTimeout) {
        this.connection = connection;
        this.dialect = dialect;
        this.hasNetworkTimeout = hasNetworkTimeout;
    }

    /**
     * Sets up a new connection. The server ends a statement somewhat before the timeout: then the connection may be used
     * again, which it may not if this process stops reading.
     */
    static Session of(Connection connection, Duration timeout) throws SQLException {
        try {
            boolean hasNetworkTimeout = setNetworkTimeout(connection, timeout.toMillis());
            Dialect dialect = Dialect.of(connection.getMetaData().getDatabaseProductName());
            connection.setAutoCommit(true);
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            try (Statement statement = connection.createStatement()) {
                for (String setting : dialect.settings(Math.max(timeout.toMillis() * 9 / 10, 1))) {
                    statement.execute(setting);
                }
            }
            return new Session(connection, dialect, hasNetworkTimeout);
        } catch (IllegalArgumentException unknown) {
            connection.close();
            throw new BackendException(String.valueOf(unknown.getMessage()), unknown, true);
        } catch (SQLException | RuntimeException failed) {
            connection.close();
            throw failed;
        }
    }

    private static boolean setNetworkTimeout(Connection connection, long millis) throws SQLException {
        try {
            connection.setNetworkTimeout(Runnable::run, (int) Math.max(millis, 1));
            return true;
        } catch (SQLFeatureNotSupportedException | AbstractMethodError unsupported) {
            return false;
        }
    }

    Dialect dialect() {
        return dialect;
    }

    Connection connection() {
        return connection;
    }

    /** Returns whether the database is in the memory of this process. */
    boolean isEmbedded() throws SQLException {
        return String.valueOf(connection.getMetaData().getURL()).startsWith("jdbc:h2:mem:");
    }

    /**
     * Returns a statement that ends by the deadline. It stays open for later calls: to prepare it again would cost a quarter of
     * a decision.
     */
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
            throw new SQLTimeoutException("there is no time left for a statement");
        }
        if (hasNetworkTimeout) {
            setNetworkTimeout(connection, left);
        }
    }

    /** Returns the failure of a call, and records whether this connection may be used again. */
    BackendException failed(SQLException error, Deadline.Call call) {
        boolean late = JdbcFailures.isLate(error);
        usable &= JdbcFailures.isCancelled(error) && !isInTransaction();
        lost |= !late;
        return late ? call.late(error) : JdbcFailures.of(error);
    }

    /** Returns whether another call may use this connection. */
    boolean isUsable() {
        return usable;
    }

    /** Returns whether this connection failed in a way that others may have failed too. */
    boolean isLost() {
        return lost;
    }

    private boolean isInTransaction() {
        try {
            return !connection.getAutoCommit();
        } catch (SQLException closed) {
            return true;
        }
    }

    /** Rolls back what isn't committed, as the drivers of some databases would commit it. */
    void close() {
        try (Connection closing = connection) {
            if (!closing.isClosed() && !closing.getAutoCommit()) {
                closing.rollback();
            }
        } catch (SQLException closed) {
            usable = false;
        }
    }
}
