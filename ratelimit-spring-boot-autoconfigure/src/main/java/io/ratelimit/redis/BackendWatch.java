package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BackendState;
import io.ratelimit.BackendState.Condition;
import io.ratelimit.TimeSource;
import java.time.Duration;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Keeps how Redis is, and says in the log when that changes: one line for an outage and one for its end; of a
 * misconfiguration one line in ten seconds while it lasts. Nothing of a request is in a line. Thread-safe.
 */
final class BackendWatch {

    private static final long PAUSE = Duration.ofSeconds(10).toNanos();
    private static final Log logger = LogFactory.getLog(FailoverBucketStore.class);

    private final TimeSource time;
    private volatile BackendState state = BackendState.up();
    private long misconfiguredAt;
    private long errorDue;

    BackendWatch(TimeSource time) {
        this.time = time;
        this.errorDue = time.nanoTime();
    }

    BackendState state() {
        return state;
    }

    /** It answered as it should. */
    void succeeded() {
        if (state.condition() == Condition.MISCONFIGURED) {
            mended();
        }
    }

    /** One key that is broken must not look like a server that comes and goes. */
    private synchronized void mended() {
        if (state.condition() == Condition.MISCONFIGURED && time.nanoTime() - misconfiguredAt >= PAUSE) {
            state = BackendState.up();
            logger.info("Redis does what it is asked again");
        }
    }

    /** It answers again after an outage. */
    synchronized void back() {
        if (state.condition() == Condition.DOWN) {
            state = BackendState.up();
            logger.info("Redis is back: limits are shared again");
        }
    }

    /** It is not asked for a while. */
    synchronized void down(BackendException failure) {
        if (state.condition() != Condition.DOWN) {
            state = BackendState.failed(failure);
            logger.warn("Redis is away (" + failure.getMessage()
                    + "): until it is back, 'on-backend-failure' decides for each policy");
        }
    }

    synchronized void misconfigured(BackendException failure) {
        long now = time.nanoTime();
        misconfiguredAt = now;
        if (state.condition() != Condition.MISCONFIGURED) {
            state = BackendState.failed(failure);
        }
        if (now - errorDue >= 0) {
            errorDue = now + PAUSE;
            logger.error("Redis can't keep limits as it is (" + failure.getMessage()
                    + "): until it is mended, 'on-backend-failure' decides for what it refuses");
        }
    }
}
