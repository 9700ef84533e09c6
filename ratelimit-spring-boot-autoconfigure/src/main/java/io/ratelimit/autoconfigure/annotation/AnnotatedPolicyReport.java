package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.autoconfigure.PolicyReport;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.RequestKey;
import java.util.Set;
import org.apache.commons.logging.Log;

/**
 * The part of the start-up report about annotated methods: one line for each policy, and warnings of probable mistakes.
 *
 * @param report the lines that are the same for policies of requests
 */
public record AnnotatedPolicyReport(PolicyReport report, Throttlers throttlers, RateLimitedOperations operations) {

    /**
     * Checks all annotations, which adds the throttlers of their limits, and logs the lines.
     *
     * @throws io.ratelimit.annotation.InvalidRateLimitedException if an annotation is wrong or would not be enforced
     */
    public void run() {
        operations.validate();
        for (PolicyThrottler throttler : throttlers.all()) {
            report(throttler.policy());
        }
    }

    private void report(ThrottlePolicy policy) {
        Policy configured = report.properties().policies().get(policy.name());
        AnnotatedPolicy limit = operations.limit(policy.name());
        if (limit != null) {
            log().info(report.describe(policy, limit.key(), limit.cost(), "call") + "; calls of "
                    + shown(operations.describeMethods(policy.name()))
                    + (configured == null ? ", limit written there" : ""));
            if (configured != null) {
                warn(configured, policy, limit.key());
            }
        } else if (configured != null && configured.appliesTo() == AppliesTo.ANNOTATED) {
            log().warn("Throttle policy '" + policy.name() + "' limits nothing: it applies to annotated methods, but no"
                    + " @RateLimited names it. Put @RateLimited(\"" + policy.name()
                    + "\") on a method of a bean, or set '"
                    + RateLimitProperties.property(policy.name()) + ".applies-to: requests'");
        }
    }

    private Log log() {
        return report.log();
    }

    private void warn(Policy configured, ThrottlePolicy policy, RequestKey key) {
        String name = policy.name();
        String property = RateLimitProperties.property(name);
        if (!operations.givesKeys(name)) {
            report.warnOfClientChosenKey(policy, key);
            report.hintAtNumbers(policy, key);
        }
        report.warnOfClientChosenTier(policy, key);
        if (configured.queueLimit() != null && !operations.mayWait(name)) {
            log().warn("Throttle policy '" + name + "' has a queue-limit but no max-wait, so no call waits. Set the"
                    + " longest wait, for example '" + property + ".max-wait: 2s', or remove the queue-limit");
        }
        if (!policy.tiers().isEmpty() && key.tier() == null && !operations.givesTiers(name)) {
            log().warn("Throttle policy '" + name + "' has tiers, but nothing selects the tier of a call: the policy's"
                    + " own limit applies to all calls. Set '" + property
                    + ".tier: role', or 'tier' in @RateLimited, or remove the tiers");
        }
    }

    private static String shown(Set<String> places) {
        return places.size() == 1
                ? places.iterator().next()
                : places.size() + " methods, such as "
                        + places.stream().sorted().findFirst().orElseThrow();
    }
}
