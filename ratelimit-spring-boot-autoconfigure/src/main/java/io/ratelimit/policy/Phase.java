package io.ratelimit.policy;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyPart.Availability;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestTier;
import io.ratelimit.policy.RateLimitProperties.MaxWait;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * The moment of the filter chain at which a policy decides. Without a written phase it is derived.
 *
 * <p>A policy that needs only what is known before authentication could decide there. Requests that authentication
 * answers with 401 would then take tokens: anyone could drain the bucket of a tenant, of an endpoint or of the whole
 * application without an account. Therefore, in an application that authenticates, the derived phase is early only for a
 * key with the client's address, whose buckets other clients can't reach. A policy whose requests may wait is late:
 * before authentication, any client could fill its queue.
 */
public enum Phase {
    /** Before Spring Security: requests with wrong credentials are counted, too. */
    BEFORE_AUTHENTICATION,
    /** After Spring Security: the user is known. */
    AFTER_AUTHENTICATION;

    private static final String SPRING_SECURITY = "springSecurityFilterChain";

    /**
     * Returns the written phase, or else the derived one.
     *
     * @param authenticates whether something authenticates requests between the two phases
     * @throws InvalidConfigurationPropertyValueException if the early phase is written and the policy needs the user
     */
    public static Phase of(String property, Policy policy, boolean authenticates) {
        if (policy.phase() == null) {
            return mayBeEarly(policy, authenticates) && !mayWait(policy) ? BEFORE_AUTHENTICATION : AFTER_AUTHENTICATION;
        }
        if (policy.phase() == BEFORE_AUTHENTICATION) {
            inputs(policy).forEach((reason, availability) -> {
                if (availability == Availability.NEEDS_USER) {
                    throw new InvalidConfigurationPropertyValueException(
                            property + ".phase", "before-authentication", reason);
                }
            });
        }
        return policy.phase();
    }

    /** Returns whether {@code max-wait} is the only reason for which the derived phase is late. */
    public static boolean isLateToWait(Policy policy, boolean authenticates) {
        return policy.phase() == null && mayWait(policy) && mayBeEarly(policy, authenticates);
    }

    /** Returns whether something authenticates requests between the two phases. */
    public static boolean authenticates(RateLimitProperties properties, BeanFactory beans) {
        return properties.filter().afterAuthenticationOrder() != null || beans.containsBean(SPRING_SECURITY);
    }

    private static boolean mayBeEarly(Policy policy, boolean authenticates) {
        return inputs(policy).values().stream().allMatch(Availability.IMMEDIATE::equals)
                && (!authenticates || KeyPart.names(policy.key()).contains("ip"));
    }

    private static boolean mayWait(Policy policy) {
        MaxWait maxWait = policy.maxWait();
        return maxWait != null && !maxWait.duration().isZero();
    }

    /** Returns when each fact is known that the policy depends on, by the reason why one of the user can't be read early. */
    private static Map<String, Availability> inputs(Policy policy) {
        Map<String, Availability> inputs = new LinkedHashMap<>();
        for (KeyPart part : policy.key()) {
            inputs.put(
                    "The key has the part '" + part.name() + "', which is unknown before authentication."
                            + " Remove the phase, or key the policy by 'ip'.",
                    part.availability());
        }
        for (KeyPart part : policy.guaranteed() == null
                ? List.<KeyPart>of()
                : policy.guaranteed().key()) {
            inputs.put(
                    "The guaranteed shares have the key '" + part.name() + "', which is unknown before authentication:"
                            + " no request would have a share. Remove the phase, or key the shares by 'ip'.",
                    part.availability());
        }
        inputs.put(reason("cost", policy.cost()), policy.cost().availability());
        RequestTier tier = policy.tier();
        if (tier != null) {
            inputs.put(reason("tier", tier), tier.availability());
        }
        if (policy.limit() != null) {
            inputs.put(reason("limit", policy.limit()), Availability.MAY_CHANGE);
        }
        RequestCondition condition = policy.condition();
        if (condition != null) {
            inputs.put(reason("condition", condition), condition.availability());
        }
        return inputs;
    }

    private static String reason(String property, Object expression) {
        return "The " + property + " '" + expression + "' reads the user, who is unknown before authentication. Remove"
                + " the phase, or don't read the user.";
    }
}
