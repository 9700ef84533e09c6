package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Logs what a policy couldn't find out about requests, at most one line a policy in ten seconds, with the count since
 * the last. Nothing of a request is in a line, if it isn't in what it is given.
 */
public final class FailureLog {

    private static final Log logger = LogFactory.getLog(FailureLog.class);

    private final LineSampler lines;
    private final Map<String, Failure> latest = new ConcurrentHashMap<>();

    private record Failure(String what, String why) {}

    public FailureLog(TimeSource time) {
        this.lines = new LineSampler(time, this::log);
    }

    /**
     * @param policy its name
     * @param what could not be found out, and what holds instead
     * @param why in words that are free of what clients send
     */
    public void failed(String policy, String what, String why) {
        latest.put(policy, new Failure(what, why));
        lines.count(policy);
    }

    private void log(String policy, long failures) {
        Failure failure = Objects.requireNonNull(latest.get(policy));
        logger.warn("Throttle policy '" + policy + "' could not tell " + failure.what + " (" + failure.why
                + "); failures since it was last logged: " + failures);
    }
}
