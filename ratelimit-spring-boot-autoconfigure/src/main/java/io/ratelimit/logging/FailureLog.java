package io.ratelimit.logging;

import io.ratelimit.TimeSource;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Logs failures to determine a cost, a condition, a tier or a key part: for each policy at most one line in ten seconds,
 * with the count since the previous line. Lines contain only the given texts and no data of requests. Thread-safe.
 */
final class FailureLog {

    private static final Log logger = LogFactory.getLog(FailureLog.class);

    private final TimeSource time;
    private final Map<String, PolicyFailures> policies = new ConcurrentHashMap<>();

    /** @param time the clock of the pauses between lines */
    public FailureLog(TimeSource time) {
        this.time = time;
    }

    /**
     * Logs a failure, or counts it for the next line.
     *
     * @param policy the name of the policy
     * @param what the value that could not be determined, and the one used instead: {@code its cost, which counted as 1}
     * @param why the reason, without data that clients send
     */
    public void failed(String policy, String what, String why) {
        policies.computeIfAbsent(policy, PolicyFailures::new).failed(what + " (" + why + ")");
    }

    /** The lines of one policy. */
    private final class PolicyFailures {

        private final String policy;
        private final LineSampler lines;
        private volatile String latest = "";

        PolicyFailures(String policy) {
            this.policy = policy;
            this.lines = new LineSampler(time, this::log);
        }

        void failed(String failure) {
            latest = failure;
            lines.count();
        }

        private void log(String requests) {
            LogFields.write(
                    policy,
                    null,
                    () -> logger.warn(
                            "Throttle policy '" + policy + "' could not determine " + latest + ", for " + requests));
        }
    }
}
