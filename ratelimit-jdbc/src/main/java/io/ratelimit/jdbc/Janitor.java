package io.ratelimit.jdbc;

import io.ratelimit.remote.Deadline;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** Removes the rows of full buckets, every few minutes, on a connection of its own. A failure waits for the next time. */
final class Janitor {

    private static final Log logger = LogFactory.getLog(Janitor.class);

    private static final Duration PAUSE = Duration.ofMinutes(5);
    private static final Duration LONGEST = Duration.ofSeconds(30);

    private final DataSource source;
    private final BucketTable table;
    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread daemon = new Thread(work, "ratelimit-jdbc-janitor");
        daemon.setDaemon(true);
        return daemon;
    });

    Janitor(DataSource source, BucketTable table) {
        this.source = source;
        this.table = table;
    }

    /** Begins at a random moment: other instances do the same. */
    void start() {
        long seconds = PAUSE.toSeconds();
        thread.scheduleWithFixedDelay(
                this::sweep, 1 + ThreadLocalRandom.current().nextLong(seconds), seconds, TimeUnit.SECONDS);
    }

    void sweep() {
        try {
            Session session = Session.of(source.getConnection(), LONGEST);
            try {
                table.removeExpired(session, Deadline.Call.within(LONGEST, JdbcFailures::of));
            } finally {
                session.close();
            }
        } catch (SQLException | RuntimeException failed) {
            logger.debug("Expired rows are left for later: " + failed.getMessage());
        }
    }

    void close() {
        thread.shutdownNow();
    }
}
