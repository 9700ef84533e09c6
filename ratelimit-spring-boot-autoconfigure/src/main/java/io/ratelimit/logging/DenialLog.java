package io.ratelimit.logging;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.PolicyListener;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * A listener that logs denials: for each policy at most one line in ten seconds, with the count since the previous line. A
 * flood of requests thus causes no flood of lines, and the denials at its end are logged too. Lines contain no data of
 * requests. Thread-safe.
 */
final class DenialLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(DenialLog.class);

    private final TimeSource time;

    /** @param time the clock of the pauses between lines */
    public DenialLog(TimeSource time) {
        this.time = time;
    }

    @Override
    public PolicyListener added(PolicyThrottler throttler) {
        return new PolicyDenials(throttler.policy().name());
    }

    @Override
    public void decided(Decision decision) {}

    /** The lines of one policy. */
    private final class PolicyDenials implements PolicyListener {

        private final String policy;
        private final LineSampler enforced;
        private final LineSampler shadow;

        PolicyDenials(String policy) {
            this.policy = policy;
            this.enforced = new LineSampler(time, denials -> log("denied", denials, ""));
            this.shadow = new LineSampler(
                    time, denials -> log("shadow-denied", denials, "; it is in shadow mode, so no call was rejected"));
        }

        @Override
        public void decided(Decision decision, Answer answer) {
            if (!answer.allowed() && answer.outcome() != Outcome.BACKEND_FAILED) {
                (answer.policy().mode() == Mode.SHADOW ? shadow : enforced).count();
            }
        }

        private void log(String outcome, long denials, String suffix) {
            LogFields.write(
                    policy,
                    outcome,
                    () -> logger.info("Throttle policy '" + policy + "' denied " + denials + " since it was last logged"
                            + suffix));
        }
    }
}
