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
 * become a flood of lines. Nothing of a request is in a line.
 */
public final class DenialLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(DenialLog.class);

    private final LineSampler lines;

    public DenialLog(TimeSource time) {
        this.lines = new LineSampler(time);
    }

    @Override
    public void decided(Decision decision) {
        if (!decision.allowed()) {
            for (Answer violation : decision.violations()) {
                if (violation.decision().outcome() != Outcome.BACKEND_FAILED) {
                    log(violation.policy());
                }
            }
        }
    }

    private void log(ThrottlePolicy policy) {
        long denied = lines.count(policy.name());
        if (denied > 0) {
            logger.info("Throttle policy '" + policy.name() + "' denied " + denied + " since it was last logged"
                    + (policy.mode() == Mode.SHADOW ? "; it is in shadow mode, so none was refused" : ""));
        }
    }
}
