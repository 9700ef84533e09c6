package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.Known;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.web.servlet.Phase;
import java.util.ArrayList;
import java.util.List;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/** When a policy is asked: as it is written, or as early as all that it asks for is known. */
final class PolicyPhase {

    private PolicyPhase() {}

    /**
     * @throws InvalidConfigurationPropertyValueException if it is written to be asked before what it asks for is known
     */
    static Phase of(String property, Policy policy) {
        List<Ask> asks = asks(policy);
        if (policy.phase() == null) {
            return asks.stream().allMatch(ask -> ask.known == Known.AT_ONCE)
                    ? Phase.BEFORE_AUTHENTICATION
                    : Phase.AFTER_AUTHENTICATION;
        }
        if (policy.phase() == Phase.BEFORE_AUTHENTICATION) {
            asks.stream()
                    .filter(ask -> ask.known == Known.WITH_USER)
                    .findFirst()
                    .ifPresent(ask -> {
                        throw new InvalidConfigurationPropertyValueException(
                                property + ".phase", "before-authentication", ask.reason);
                    });
        }
        return policy.phase();
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
