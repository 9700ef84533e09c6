package io.ratelimit.logging;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.TimeSource;
import java.util.List;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * A listener that logs denials: for each policy at most one line in ten seconds, with the count since the previous line. A
 * flood of requests thus causes no flood of lines, and the denials at its end are logged too. Lines contain no data of
 * requests. Thread-safe.
 */
final class DenialLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(DenialLog.class);

    private final LineSampler enforced;
    private final LineSampler shadow;

    /** @param time the clock of the pauses between lines */
    public DenialLog(TimeSource time) {
        this.enforced = new LineSampler(time, (policy, denials) -> log(policy, "denied", denials, ""));
        this.shadow = new LineSampler(
                time,
                (policy, denials) ->
                        log(policy, "shadow-denied", denials, "; it is in shadow mode, so no call was rejected"));
    }

    @Override
    public void decided(Decision decision) {
        if (decision.allowed()) {
            return;
        }
        List<Answer> answers = decision.answers();
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            if (!answer.allowed() && answer.outcome() != Outcome.BACKEND_FAILED) {
                count(answer.policy());
            }
        }
    }

    private void count(ThrottlePolicy policy) {
        (policy.mode() == Mode.SHADOW ? shadow : enforced).count(policy.name());
    }

    private static void log(String policy, String outcome, long denials, String suffix) {
        LogFields.write(
                policy,
                outcome,
                () -> logger.info(
                        "Throttle policy '" + policy + "' denied " + denials + " since it was last logged" + suffix));
    }
}
