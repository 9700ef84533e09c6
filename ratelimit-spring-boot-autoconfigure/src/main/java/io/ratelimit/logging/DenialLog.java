package io.ratelimit.logging;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * Logs denials, at most one line a policy in ten seconds, with the count since the last: a flood of requests must not
 * become a flood of lines. The end of a flood is told as well. Nothing of a request is in a line.
 */
public final class DenialLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(DenialLog.class);

    private final LineSampler enforced;
    private final LineSampler shadows;

    public DenialLog(TimeSource time) {
        this.enforced = new LineSampler(time, (policy, denied) -> log(policy, denied, ""));
        this.shadows = new LineSampler(
                time, (policy, denied) -> log(policy, denied, "; it is in shadow mode, so none was refused"));
    }

    @Override
    public void decided(Decision decision) {
        if (!decision.allowed()) {
            for (Answer violation : decision.violations()) {
                if (violation.decision().outcome() != Outcome.BACKEND_FAILED) {
                    count(violation.policy());
                }
            }
        }
    }

    private void count(ThrottlePolicy policy) {
        (policy.mode() == Mode.SHADOW ? shadows : enforced).count(policy.name());
    }

    private static void log(String policy, long denied, String shadow) {
        logger.info("Throttle policy '" + policy + "' denied " + denied + " since it was last logged" + shadow);
    }
}
