package io.ratelimit.logging;

import io.ratelimit.BucketSpec;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** A listener that logs each change of a policy at runtime, with the limits before and after it. */
final class ReconfigurationLog implements ThrottleListener {

    private static final Log logger = LogFactory.getLog(ReconfigurationLog.class);

    @Override
    public void decided(Decision decision) {}

    @Override
    public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
        String policy = "Throttle policy '" + after.name() + "'";
        LogFields.write(after.name(), null, () -> {
            log(policy, before.spec(), after.spec());
            after.tiers()
                    .forEach((tier, spec) -> log(
                            policy + " in tier '" + tier + "'",
                            before.tiers().getOrDefault(tier, before.spec()),
                            spec));
        });
    }

    private static void log(String limit, BucketSpec before, BucketSpec after) {
        if (!after.equals(before)) {
            logger.info(limit + " was changed at runtime: " + after + "; before: " + before);
        }
    }
}
