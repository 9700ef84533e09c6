package io.ratelimit.remote;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BackendException;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * The state of a backend, and its log lines. An outage has one line at its start and one at its end; of outages in quick
 * succession only one in ten seconds is logged. A misconfiguration has one line in ten seconds while it lasts. No line
 * contains anything of a request. Thread-safe.
 */
final class BackendHealth {

    private static final long PAUSE = Duration.ofSeconds(10).toNanos();
    private static final Log logger = LogFactory.getLog(FailoverBucketStore.class);

    private final String name;
    private final TimeSource time;
    private volatile Backend.State state = Backend.State.up();
    private long misconfiguredAt;
    private long nextMisconfigurationLine;
    private long nextOutageLine;
    private long nextCongestionLine;
    private boolean outageLogged;
    private int unloggedOutages;

    BackendHealth(String name, TimeSource time) {
        this.name = name;
        this.time = time;
        this.nextMisconfigurationLine = time.nanoTime();
        this.nextOutageLine = nextMisconfigurationLine;
        this.nextCongestionLine = nextMisconfigurationLine;
    }

    Backend.State state() {
        return state;
    }

    void succeeded() {
        if (state.condition() == Condition.MISCONFIGURED) {
            endMisconfiguration();
        }
    }

    /** Waits for the pause: one broken key must not look like a server that changes its state all the time. */
    private synchronized void endMisconfiguration() {
        if (state.condition() == Condition.MISCONFIGURED && time.nanoTime() - misconfiguredAt >= PAUSE) {
            state = Backend.State.up();
            logger.info(name + " is no longer misconfigured");
        }
    }

    synchronized void recovered() {
        if (state.condition() == Condition.DOWN) {
            state = Backend.State.up();
            if (outageLogged) {
                logger.info(name + " is available again");
            } else {
                unloggedOutages++;
            }
        }
    }

    /**
     * @param isDown returns whether the outage lasts: this thread may be delayed until a probe of another thread has ended
     *     the outage, and then no later call would correct the state
     */
    synchronized void down(BackendException failure, BooleanSupplier isDown) {
        if (state.condition() != Condition.DOWN) {
            state = Backend.State.failed(failure);
            outageLogged = false;
        }
        logOutage(failure);
        if (!isDown.getAsBoolean()) {
            recovered();
        }
    }

    /** Records a call that failed. It changes nothing, but an outage that wasn't logged yet may be logged. */
    void failed(BackendException failure) {
        if (state.condition() == Condition.DOWN) {
            logOutage(failure);
        }
    }

    private synchronized void logOutage(BackendException failure) {
        long now = time.nanoTime();
        if (outageLogged || state.condition() != Condition.DOWN || now - nextOutageLine < 0) {
            return;
        }
        String unlogged =
                unloggedOutages == 0 ? "" : ". There were " + unloggedOutages + " more outages since the last line";
        outageLogged = true;
        nextOutageLine = now + PAUSE;
        unloggedOutages = 0;
        logger.warn(name + " is unavailable (" + failure.getMessage()
                + "): until it is available again, 'on-backend-failure' decides for each policy" + unlogged);
    }

    /** Logs a call that this process didn't make in time, which proves nothing about the backend. */
    synchronized void congested(BackendException failure) {
        long now = time.nanoTime();
        if (now - nextCongestionLine >= 0) {
            nextCongestionLine = now + PAUSE;
            logger.warn("This process is too busy to call " + name + " for each decision in time ("
                    + failure.getMessage() + "): the local share makes the other decisions, or they are denials where"
                    + " 'on-backend-failure' is 'deny'");
        }
    }

    /** Records a call that the backend rejected. It doesn't end an outage: the call may have begun before. */
    synchronized void misconfigured(BackendException failure) {
        long now = time.nanoTime();
        misconfiguredAt = now;
        if (state.condition() == Condition.UP) {
            state = Backend.State.failed(failure);
        }
        if (now - nextMisconfigurationLine >= 0) {
            nextMisconfigurationLine = now + PAUSE;
            logger.error(name + " is misconfigured (" + failure.getMessage()
                    + "): until this is corrected, 'on-backend-failure' decides for each call that fails");
        }
    }
}
