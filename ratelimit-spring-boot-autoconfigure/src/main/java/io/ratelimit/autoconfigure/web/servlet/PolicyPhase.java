package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.MaxWait;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.Known;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestTier;
import io.ratelimit.web.servlet.Phase;
import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * When a policy is asked: as it is written, or as early as all that it asks for is known; but where it lets requests wait,
 * not before it is known whose they are.
 */
final class PolicyPhase {

    private PolicyPhase() {}

    /**
     * @throws InvalidConfigurationPropertyValueException if it is written to be asked before what it asks for is known
     */
    static Phase of(String property, Policy policy) {
        List<Ask> asks = asks(policy);
        if (policy.phase() == null) {
            return isKnownAtOnce(asks) && !letsWait(policy) ? Phase.BEFORE_AUTHENTICATION : Phase.AFTER_AUTHENTICATION;
        }
        if (policy.phase() == Phase.BEFORE_AUTHENTICATION) {
            for (Ask ask : asks) {
                if (ask.known == Known.WITH_USER) {
                    throw new InvalidConfigurationPropertyValueException(
                            property + ".phase", "before-authentication", ask.reason);
                }
            }
        }
        return policy.phase();
    }

    /** Whether it is asked after authentication for no other reason than that it lets requests wait. */
    static boolean isLateToWait(Policy policy) {
        return policy.phase() == null && letsWait(policy) && isKnownAtOnce(asks(policy));
    }

    private static boolean isKnownAtOnce(List<Ask> asks) {
        return asks.stream().allMatch(ask -> ask.known == Known.AT_ONCE);
    }

    private static boolean letsWait(Policy policy) {
        MaxWait maxWait = policy.maxWait();
        return maxWait != null && !maxWait.duration().isZero();
    }

    private static List<Ask> asks(Policy policy) {
        List<Ask> asks = new ArrayList<>();
        for (KeyPart part : policy.key()) {
            asks.add(new Ask(
                    part.known(),
                    "The key has the part '" + part.name() + "', which nobody knows before authentication: all requests"
                            + " would share one bucket. Remove the phase, or count by 'ip'."));
        }
        asks.add(new Ask(policy.cost().known(), reason("cost", policy.cost())));
        RequestTier tier = policy.tier();
        if (tier != null) {
            asks.add(new Ask(tier.known(), reason("tier", tier)));
        }
        RequestCondition condition = policy.condition();
        if (condition != null) {
            asks.add(new Ask(condition.known(), reason("condition", condition)));
        }
        return asks;
    }

    private static String reason(String property, Object expression) {
        return "The " + property + " '" + expression + "' asks for the user, whom nobody knows before authentication."
                + " Remove the phase, or what asks for the user.";
    }

    /** Something that the policy asks for, and why that can't be early if it can't. */
    private record Ask(Known known, String reason) {}
}
