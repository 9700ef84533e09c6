package io.ratelimit.jdbc;

import io.ratelimit.CompareAndSetBucketStore.Reading;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.KeyHash;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The statements on the table of buckets: {@code id} (binary, the primary key), {@code state} (binary) and {@code expires} (a
 * timestamp in UTC). Each value is read together with the server's clock, or both are guessed from {@link LastWrites}. It is
 * written only if it is unchanged and the clock fits. Hence no lock that a write waits for can make the clock old.
 *
 * @param name the name of the table, with its schema if there is one
 */
record BucketTable(String name) {

    private static final Duration LONGEST = Duration.ofDays(365 * 100);
    private static final int BATCH = 1_000;

    /**
     * @param before the value as it was read; null if there was none
     * @param after the new value; null to remove the row
     * @param epochMicros the time of the reading: no row is changed while the server's clock is behind it
     * @param untilMicros the time after which no row is changed either, for a reading that is guessed
     * @param timeToLive the time from then on after which the row may be removed
     */
    record Write(
            byte[] id,
            byte @Nullable [] before,
            byte @Nullable [] after,
            long epochMicros,
            long untilMicros,
            Duration timeToLive) {

        private LocalDateTime expires() {
            Duration most = timeToLive.compareTo(LONGEST) < 0 ? timeToLive : LONGEST;
            return time(epochMicros + most.toNanos() / 1_000 + 1);
        }
    }

    /** Reads the clock and the values of rows, each null if there is no row. */
    Reading read(List<byte[]> ids, Session session, Deadline.Call call) throws SQLException {
        PreparedStatement select = session.prepare(session.dialect().select(name, ids.size()), call);
        for (int i = 0; i < ids.size(); i++) {
            select.setBytes(i + 1, ids.get(i));
        }
        try (ResultSet rows = select.executeQuery()) {
            return reading(ids, rows);
        }
    }

    private static Reading reading(List<byte[]> ids, ResultSet rows) throws SQLException {
        byte[][] values = new byte[ids.size()][];
        long clock = 0;
        while (rows.next()) {
            clock = Math.max(clock, rows.getLong(1));
            byte[] id = rows.getBytes(2);
            for (int i = 0; id != null && i < values.length; i++) {
                if (Arrays.equals(id, ids.get(i))) {
                    values[i] = rows.getBytes(3);
                }
            }
        }
        return new Reading(clock, Arrays.asList(values));
    }

    /**
     * Writes all of the values, or none if one of them was changed since it was read.
     *
     * @param writes values of different rows; all calls write in the order of the ids, so that none waits for another in turn
     */
    boolean compareAndSet(List<Write> writes, Session session, Deadline.Call call) throws SQLException {
        if (writes.size() == 1) {
            return writeAll(writes, session, call);
        }
        Connection connection = session.connection();
        session.limit(call);
        connection.setAutoCommit(false);
        boolean written = writeAll(writes, session, call);
        if (!written && call.leftNanos() < 1_000_000) {
            session.discard(); // there is no time to roll back, and a lost race is no failure of the database
            return false;
        }
        session.limit(call);
        if (written) {
            connection.commit();
        } else {
            connection.rollback();
        }
        connection.setAutoCommit(true);
        return written;
    }

    private boolean writeAll(List<Write> writes, Session session, Deadline.Call call) throws SQLException {
        List<Write> sorted = new ArrayList<>(writes);
        sorted.sort((one, other) -> Arrays.compareUnsigned(one.id, other.id));
        try {
            for (Write write : sorted) {
                if (!write(write, session, call)) {
                    return false;
                }
            }
            return true;
        } catch (SQLException failed) {
            if (JdbcFailures.isConflict(failed)) {
                return false;
            }
            throw failed;
        }
    }

    private boolean write(Write write, Session session, Deadline.Call call) throws SQLException {
        if (write.after == null) {
            return write.before == null
                    || execute(
                            session.dialect().delete(name),
                            session,
                            call,
                            write.id,
                            write.before,
                            write.epochMicros,
                            write.untilMicros);
        }
        return write.before == null
                ? execute(session.dialect().insert(name), session, call, write.after, write.expires(), write.id)
                : execute(
                        session.dialect().update(name),
                        session,
                        call,
                        write.after,
                        write.expires(),
                        write.id,
                        write.before,
                        write.epochMicros,
                        write.untilMicros);
    }

    /** Executes a statement that changes one row. Returns whether it did. */
    private static boolean execute(String sql, Session session, Deadline.Call call, Object... values)
            throws SQLException {
        PreparedStatement statement = session.prepare(sql, call);
        for (int i = 0; i < values.length; i++) {
            if (values[i] instanceof byte[] bytes) {
                statement.setBytes(i + 1, bytes);
            } else {
                statement.setObject(i + 1, values[i]);
            }
        }
        return statement.executeUpdate() > 0;
    }

    /** Returns a time of the server's clock in the form of the column. */
    private static LocalDateTime time(long epochMicros) {
        return LocalDateTime.ofInstant(Instant.EPOCH.plus(epochMicros, ChronoUnit.MICROS), ZoneOffset.UTC);
    }

    boolean remove(byte[] id, Session session, Deadline.Call call) throws SQLException {
        return execute("DELETE FROM " + name + " WHERE id = ?", session, call, id);
    }

    /** Removes the rows that have expired by the server's clock, in batches. Returns whether there was time for all. */
    boolean removeExpired(Session session, Deadline.Call call) throws SQLException {
        LocalDateTime now =
                time(read(List.of(new byte[KeyHash.BYTES]), session, call).epochMicros());
        int removed = BATCH;
        while (removed == BATCH && call.leftNanos() > 0) {
            PreparedStatement delete = session.prepare(session.dialect().deleteExpired(name, BATCH), call);
            delete.setObject(1, now);
            removed = delete.executeUpdate();
        }
        return removed < BATCH;
    }

    boolean exists(Session session, Deadline.Call call) throws SQLException {
        try {
            read(List.of(new byte[KeyHash.BYTES]), session, call);
            return true;
        } catch (SQLException failed) {
            if (JdbcFailures.isMissingTable(failed)) {
                return false;
            }
            throw failed;
        }
    }

    /**
     * Creates the table, unless another instance is first. It uses a connection without the settings of a {@link Session}:
     * PostgreSQL would forget an asynchronous commit if it crashed now.
     */
    void create(DataSource source, Session session, Deadline.Call call) throws SQLException {
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(true);
            statement.executeUpdate(script(session.dialect()));
        } catch (SQLException failed) {
            if (!exists(session, call)) {
                throw failed;
            }
        }
    }

    private String script(Dialect dialect) {
        try (InputStream script = BucketTable.class.getResourceAsStream(dialect.script())) {
            return new String(Objects.requireNonNull(script).readAllBytes(), StandardCharsets.UTF_8)
                    .replace("ratelimit_bucket", name)
                    .replace(";", ""); // other tools need the end of the statement, and Oracle's driver rejects it
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }
}
