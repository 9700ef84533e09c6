package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.AnnotatedPolicy;
import io.ratelimit.annotation.RateLimitedCheck;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.ClientChoices;
import io.ratelimit.autoconfigure.PolicyDescription;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.RequestKey;
import java.util.Set;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;

/** Has the annotations checked when the application starts, and says in the log what they limit and how. */
final class AnnotatedPolicyReport implements SmartInitializingSingleton {

    private static final Log logger = LogFactory.getLog(AnnotatedPolicyReport.class);

    private final RateLimitProperties properties;
    private final Throttlers throttlers;
    private final RateLimitedOperations operations;
    private final RateLimitedCheck check;

    AnnotatedPolicyReport(
            RateLimitProperties properties,
            Throttlers throttlers,
            RateLimitedOperations operations,
            RateLimitedCheck check) {
        this.properties = properties;
        this.throttlers = throttlers;
        this.operations = operations;
        this.check = check;
    }

    @Override
    public void afterSingletonsInstantiated() {
        check.check();
        for (Throttler throttler : throttlers.all()) {
            report(throttler.policy());
        }
    }

    private void report(ThrottlePolicy policy) {
        Policy configured = properties.policies().get(policy.name());
        AnnotatedPolicy limit = operations.limit(policy.name());
        if (limit != null) {
            logger.info(PolicyDescription.of(policy, limit.key(), limit.cost(), "call", properties) + "; calls of "
                    + shown(operations.placesOf(policy.name()))
                    + (configured == null ? ", limit written there" : ""));
            if (configured != null) {
                warn(configured, policy, limit.key());
            }
        } else if (configured != null && configured.appliesTo() == AppliesTo.ANNOTATED) {
            logger.warn(
                    "Throttle policy '" + policy.name() + "' limits nothing: it applies to annotated methods, and no"
                            + " @RateLimited names it. Put @RateLimited(\"" + policy.name()
                            + "\") on a method of a bean, or say '"
                            + RateLimitProperties.property(policy.name()) + ".applies-to: requests'");
        }
    }

    private void warn(Policy configured, ThrottlePolicy policy, RequestKey key) {
        String name = policy.name();
        String property = RateLimitProperties.property(name);
        ClientChoices choices = new ClientChoices(policy, key);
        if (!operations.givesKeys(name)) {
            choices.warnOfKey(logger);
        }
        choices.warnOfTier(logger);
        if (configured.queueLimit() != null && !operations.letsWait(name)) {
            logger.warn("Throttle policy '" + name + "' has a queue-limit, but lets no call wait. Say for how long they"
                    + " may, as in '" + property + ".max-wait: 2s', or remove the queue-limit");
        }
        if (!policy.tiers().isEmpty() && key.tier() == null && !operations.givesTiers(name)) {
            logger.warn(
                    "Throttle policy '" + name + "' has tiers, but nothing says which tier a call belongs to, so all"
                            + " are held to the policy's own limit. Say '" + property
                            + ".tier: role', or 'tier' in @RateLimited,"
                            + " or remove the tiers");
        }
    }

    private static String shown(Set<String> places) {
        return places.size() == 1
                ? places.iterator().next()
                : places.size() + " methods, such as "
                        + places.stream().sorted().findFirst().orElseThrow();
    }
}
