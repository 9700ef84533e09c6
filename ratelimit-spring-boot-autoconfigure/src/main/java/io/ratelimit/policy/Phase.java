package io.ratelimit.policy;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.KeyPart.Availability;
import io.ratelimit.key.RequestCondition;
import io.ratelimit.key.RequestTier;
import io.ratelimit.policy.RateLimitProperties.MaxWait;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.ArrayList;
import java.util.List;
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
            for (Input input : inputs(policy)) {
                if (input.availability == Availability.NEEDS_USER) {
                    throw new InvalidConfigurationPropertyValueException(
                            property + ".phase", "before-authentication", input.reason);
                }
            }
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
        return inputs(policy).stream().allMatch(input -> input.availability == Availability.IMMEDIATE)
                && (!authenticates || KeyPart.names(policy.key()).contains("ip"));
    }

    private static boolean mayWait(Policy policy) {
        MaxWait maxWait = policy.maxWait();
        return maxWait != null && !maxWait.duration().isZero();
    }

    private static List<Input> inputs(Policy policy) {
        List<Input> inputs = new ArrayList<>();
        for (KeyPart part : policy.key()) {
            inputs.add(new Input(
                    part.availability(),
                    "The key has the part '" + part.name() + "', which is unknown before authentication: all requests"
                            + " would share one bucket. Remove the phase, or key the policy by 'ip'."));
        }
        if (policy.guaranteed() != null) {
            for (KeyPart part : policy.guaranteed().key()) {
                inputs.add(new Input(
                        part.availability(),
                        "The guaranteed shares have the key '" + part.name()
                                + "', which is unknown before authentication: no"
                                + " request would have a share. Remove the phase, or key the shares by 'ip'."));
            }
        }
        inputs.add(new Input(policy.cost().availability(), reason("cost", policy.cost())));
        RequestTier tier = policy.tier();
        if (tier != null) {
            inputs.add(new Input(tier.availability(), reason("tier", tier)));
        }
        if (policy.limit() != null) {
            inputs.add(new Input(Availability.MAY_CHANGE, reason("limit", policy.limit())));
        }
        RequestCondition condition = policy.condition();
        if (condition != null) {
            inputs.add(new Input(condition.availability(), reason("condition", condition)));
        }
        return inputs;
    }

    private static String reason(String property, Object expression) {
        return "The " + property + " '" + expression + "' reads the user, who is unknown before authentication. Remove"
                + " the phase, or don't read the user.";
    }

    /**
     * A fact that the policy depends on.
     *
     * @param availability when the fact is known
     * @param reason why the early phase is impossible if the fact is known only with the user
     */
    private record Input(Availability availability, String reason) {}
}
