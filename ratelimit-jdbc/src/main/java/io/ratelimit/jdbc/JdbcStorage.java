package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.Charge;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.Storage;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A table of a database as the place of an application's buckets: the bucket store and the connections that it needs.
 * Thread-safe.
 */
public final class JdbcStorage implements Storage {

    private static final Charge PROBE = FailoverBucketStore.PROBE_CHARGE;
    private static final Duration START_TIMEOUT = Duration.ofSeconds(3);
    private static final Duration LONGEST_OPERATION = Duration.ofMillis(800);
    private static final int WARM_UPS = 3;

    private final DataSource source;
    private final Settings settings;
    private final BucketTable table;
    private final ConnectionPool connections;
    private final JdbcBucketStore store;
    private final JdbcChanges changes;
    private final Janitor janitor;

    /**
     * The settings of a storage.
     *
     * @param table the name of the table, with its schema if there is one
     * @param creates whether a missing table is created at the start in the database of a URL
     * @param connections the most connections that calls use at the same time
     * @param timeout the longest time of a statement
     * @param prefix makes the rows of this application others than those of another one
     * @param secret the key of the hash in ids, and of the HMAC of changes; empty for none
     */
    public record Settings(
            String table, Predicate<String> creates, int connections, Duration timeout, String prefix, String secret) {

        /** Leaves out the secret. */
        @Override
        public String toString() {
            return "Settings[table=" + table + ", connections=" + connections + ", timeout=" + timeout + ", prefix="
                    + prefix + "]";
        }
    }

    /** The table of the buckets doesn't exist, and isn't to be created, or the database refuses to create it. */
    public static final class MissingTableException extends BackendException {

        private static final long serialVersionUID = 1;

        /**
         * @param script the location of the script in the class path
         * @param refusal the reason why the database doesn't create the table; null if it isn't to be created
         */
        MissingTableException(String table, String script, @Nullable SQLException refusal) {
            super(
                    "the table '" + table + "' doesn't exist in the database"
                            + (refusal == null
                                    ? "; the script '" + script + "' of ratelimit-jdbc creates it"
                                    : ", which refuses to create it by the script '" + script + "' of ratelimit-jdbc: "
                                            + JdbcFailures.message(refusal)),
                    refusal,
                    true);
        }
    }

    /**
     * A data source that gives options to a PostgreSQL when it opens a connection. With any other one the storage sets them
     * afterwards. A pooler that gives sessions to several applications in turn refuses options, and would accept settings.
     */
    public interface PostgresSource extends DataSource {

        /**
         * Opens a connection.
         *
         * @param options settings of the session in the form of PostgreSQL's parameter {@code options}, such as {@code -c
         *     statement_timeout=90}
         */
        Connection getConnection(String options) throws SQLException;
    }

    /** @param source opens a connection at each call; the storage keeps connections open, so it must not be a small pool */
    public JdbcStorage(DataSource source, Settings settings, Deadline deadline) {
        this(source, settings, deadline, Janitor.PAUSE);
    }

    /** @param pause the time between two removals of expired rows */
    JdbcStorage(DataSource source, Settings settings, Deadline deadline, Duration pause) {
        this.source = source;
        this.settings = settings;
        this.table = new BucketTable(settings.table);
        this.connections = new ConnectionPool(source, settings.connections, settings.timeout, this::requireTable);
        TableIds ids = new TableIds(settings.prefix, settings.secret);
        this.store = new JdbcBucketStore(
                connections, table, ids, deadline, LONGEST_OPERATION, () -> JdbcBucketStore.SERVER_TIME);
        this.changes = new JdbcChanges(connections, table, ids, settings.prefix, settings.secret);
        this.janitor = new Janitor(source, table, pause);
    }

    @Override
    public BucketStore store() {
        return store;
    }

    @Override
    public ChangeBoard changes() {
        return changes;
    }

    /**
     * Connects, creates the table if it is to be created, and takes from a bucket as requests will. It takes a few seconds
     * at most. From then on, expired rows are removed every few minutes.
     *
     * @throws MissingTableException if the table is missing, and isn't to be or can't be created
     * @throws BackendException if the database fails
     */
    @Override
    public void selfTest() {
        Deadline.Call call = Deadline.Call.within(START_TIMEOUT, JdbcFailures::of);
        janitor.start();
        for (int i = 0; i < WARM_UPS; i++) {
            if (!store.call(call, rows -> rows.take(List.of(PROBE))).allowed()) {
                throw new BackendException("the bucket of the self-test is empty", null, true);
            }
        }
        connections.fill(call);
    }

    private boolean requireTable(Session session, Deadline.Call call) throws SQLException {
        if (!table.exists(session, call)) {
            String url = String.valueOf(session.connection().getMetaData().getURL());
            if (!settings.creates.test(url)) {
                throw missing(session, null);
            }
            try {
                table.create(source, session, call);
            } catch (SQLException failed) {
                if (JdbcFailures.isMisconfigured(failed)) {
                    throw missing(session, failed);
                }
                throw failed;
            }
        }
        return true;
    }

    private MissingTableException missing(Session session, @Nullable SQLException refusal) {
        return new MissingTableException(
                table.name(), "io/ratelimit/jdbc/" + session.dialect().script(), refusal);
    }

    @Override
    public void start() {
        connections.start();
    }

    @Override
    public void stop() {
        janitor.stop();
        connections.stop();
    }

    @Override
    public void close() {
        janitor.close();
        changes.close();
        connections.stop();
    }
}
