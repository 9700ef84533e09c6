package io.ratelimit.jdbc;

import io.ratelimit.BackendException;
import io.ratelimit.remote.Deadline;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Removes the rows of full buckets, every few minutes, on a connection of its own. A failure waits for the next time, and is
 * logged once if it doesn't end by itself.
 */
final class Janitor {

    private static final Log logger = LogFactory.getLog(Janitor.class);

    static final Duration PAUSE = Duration.ofMinutes(5);
    private static final Duration LONGEST = Duration.ofSeconds(30);

    /** The number of failures in sequence that can't be a short outage. */
    private static final int LASTING = 3;

    private final ConnectionPool connections;
    private final BucketTable table;
    private final Duration pause;
    private final Duration longest;
    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread daemon = new Thread(work, "ratelimit-jdbc-janitor");
        daemon.setDaemon(true);
        return daemon;
    });

    private @Nullable ScheduledFuture<?> schedule;
    private int failures;
    private boolean warned;

    /** @param pause the time between two sweeps */
    Janitor(DataSource source, BucketTable table, Duration pause) {
        this(source, table, pause, LONGEST);
    }

    /** @param longest the time that opening a connection may take, and so may a statement */
    Janitor(DataSource source, BucketTable table, Duration pause, Duration longest) {
        this.connections = new ConnectionPool(source, 1, longest, longest, longest, (session, call) -> true);
        this.table = table;
        this.pause = pause;
        this.longest = longest;
    }

    /** Begins at a random moment, as other instances do the same. */
    synchronized void start() {
        if (schedule == null) {
            long millis = pause.toMillis();
            long first = 1 + ThreadLocalRandom.current().nextLong(millis);
            schedule = thread.scheduleWithFixedDelay(this::sweep, first, millis, TimeUnit.MILLISECONDS);
        }
    }

    synchronized void stop() {
        if (schedule != null) {
            schedule.cancel(false);
            schedule = null;
        }
    }

    void sweep() {
        try {
            connections.start();
            Deadline.Call sweep = Deadline.Call.within(longest, JdbcFailures::of);
            if (connections.with(sweep, table::removeExpired)) {
                failures = 0;
                warned = false;
            } else {
                failed("there was no time for all", false);
            }
        } catch (Throwable failed) { // an exception would end the schedule
            failed(
                    String.valueOf(failed.getMessage()),
                    failed instanceof BackendException failure && failure.isMisconfiguration());
        } finally {
            connections.stop();
        }
    }

    private void failed(String reason, boolean misconfigured) {
        failures++;
        if (!warned && (misconfigured || failures >= LASTING)) {
            warned = true;
            logger.warn("Expired rows stay in the table '" + table.name() + "', which grows until they can be deleted ("
                    + reason + ")");
        } else {
            logger.debug("Expired rows are left for later: " + reason);
        }
    }

    void close() {
        thread.shutdownNow();
    }
}
