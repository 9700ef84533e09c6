package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Logs what a policy couldn't find out about requests, at most one line a policy in ten seconds, with the count since
 * the last. Nothing of a request is in a line, if it isn't in what it is given.
 */
public final class FailureLog {

    private static final Log logger = LogFactory.getLog(FailureLog.class);

    private final LineSampler lines;

    public FailureLog(TimeSource time) {
        this.lines = new LineSampler(time);
    }

    /**
     * @param policy its name
     * @param what could not be found out, and what holds instead
     * @param why in words that are free of what clients send
     */
    public void failed(String policy, String what, String why) {
        long failures = lines.count(policy);
        if (failures > 0) {
            logger.warn("Throttle policy '" + policy + "' could not tell " + what + " (" + why + "); failures since it"
                    + " was last logged: " + failures);
        }
    }
}
