package io.ratelimit.redis;

import io.ratelimit.BackendException;
import io.ratelimit.BackendState;
import io.ratelimit.BackendState.Condition;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Keeps how Redis is, and says in the log when that changes: one line for an outage and one for its end, but of outages
 * that follow quickly only one in ten seconds; of a misconfiguration one line in ten seconds while it lasts. Nothing of a
 * request is in a line. Thread-safe.
 */
final class BackendWatch {

    private static final long PAUSE = Duration.ofSeconds(10).toNanos();
    private static final Log logger = LogFactory.getLog(FailoverBucketStore.class);

    private final TimeSource time;
    private volatile BackendState state = BackendState.up();
    private long misconfiguredAt;
    private long errorDue;
    private long outageDue;
    private boolean outageSaid;
    private int unsaid;

    BackendWatch(TimeSource time) {
        this.time = time;
        this.errorDue = time.nanoTime();
        this.outageDue = errorDue;
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
            if (outageSaid) {
                logger.info("Redis is back: limits are shared again");
            } else {
                unsaid++;
            }
        }
    }

    /**
     * It is not asked for a while.
     *
     * @param still whether that is so still: a thread may be held up before it says it, until a probe of another has found
     *     it back, and nobody else would mend that
     */
    synchronized void down(BackendException failure, BooleanSupplier still) {
        if (state.condition() != Condition.DOWN) {
            state = BackendState.failed(failure);
            outageSaid = false;
        }
        sayOutage(failure);
        if (!still.getAsBoolean()) {
            back();
        }
    }

    /** It failed again, which is known already if it is away. */
    void failed(BackendException failure) {
        if (state.condition() == Condition.DOWN) {
            sayOutage(failure);
        }
    }

    private synchronized void sayOutage(BackendException failure) {
        long now = time.nanoTime();
        if (outageSaid || state.condition() != Condition.DOWN || now - outageDue < 0) {
            return;
        }
        String others = unsaid == 0 ? "" : ". It has gone " + unsaid + " times more since that was said last";
        outageSaid = true;
        outageDue = now + PAUSE;
        unsaid = 0;
        logger.warn("Redis is away (" + failure.getMessage()
                + "): until it is back, 'on-backend-failure' decides for each policy" + others);
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
