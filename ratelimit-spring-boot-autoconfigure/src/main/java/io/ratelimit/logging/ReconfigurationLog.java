package io.ratelimit.logging;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** Logs each change of a policy while it runs, a line for what it was and is. */
public final class ReconfigurationLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(ReconfigurationLog.class);

    @Override
    public void decided(Decision decision) {}

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        String policy = "Throttle policy '" + after.name() + "'";
        log(policy, before.spec(), after.spec());
        after.tiers()
                .forEach((tier, spec) -> log(
                        policy + " in tier '" + tier + "'", before.tiers().getOrDefault(tier, before.spec()), spec));
    }

    private static void log(String what, BucketSpec before, BucketSpec after) {
        if (!after.equals(before)) {
            logger.info(what + " was changed while running: " + after + "; until now " + before);
        }
    }
}
