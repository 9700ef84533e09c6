package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Logs failures to determine a cost, a condition, a tier or a key part: for each policy at most one line in ten seconds,
 * with the count since the previous line. Lines contain only the given texts and no data of requests. Thread-safe.
 */
final class FailureLog {

    private static final Log logger = LogFactory.getLog(FailureLog.class);

    private final LineSampler lines;
    private final Map<String, Failure> latest = new ConcurrentHashMap<>();

    private record Failure(String what, String why) {}

    /** @param time the clock of the pauses between lines */
    public FailureLog(TimeSource time) {
        this.lines = new LineSampler(time, this::log);
    }

    /**
     * Logs a failure, or counts it for the next line.
     *
     * @param policy the name of the policy
     * @param what the value that could not be determined, and the one used instead: {@code its cost, which counted as 1}
     * @param why the reason, without data that clients send
     */
    public void failed(String policy, String what, String why) {
        latest.put(policy, new Failure(what, why));
        lines.count(policy);
    }

    private void log(String policy, long failures) {
        Failure failure = Objects.requireNonNull(latest.get(policy));
        LogFields.write(
                policy,
                null,
                () -> logger.warn("Throttle policy '" + policy + "' could not determine " + failure.what + " ("
                        + failure.why + "); failures since it was last logged: " + failures));
    }
}
