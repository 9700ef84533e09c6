package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.RequestFacts;
import org.jspecify.annotations.Nullable;

/**
 * What one limit charges the calls of a method.
 *
 * @param limit a policy of the configuration, or a limit of its own
 * @param key in place of the policy's
 * @param cost in place of the policy's
 * @param tier that calls belong to, in place of the policy's
 * @param fallback asked when the limit refuses a call
 */
record MethodCharge(
        AnnotatedPolicy limit,
        @Nullable CallKey key,
        @Nullable CallCost cost,
        @Nullable CallTier tier,
        @Nullable Fallback fallback,
        CurrentRequest current) {

    ThrottlePolicy policy() {
        return limit.policy();
    }

    int keySize() {
        return Math.max(policy().key().size(), key == null ? 0 : 1);
    }

    boolean isConstant() {
        boolean constantKey = key == null ? limit.key().parts().isEmpty() : key.isConstant();
        boolean constantCost = cost == null ? limit.cost().constant() != null : cost.isConstant();
        boolean constantTier = tier == null && limit.key().tier() == null;
        return isOff() || constantKey && constantCost && constantTier;
    }

    private boolean isOff() {
        return policy().mode() == ThrottlePolicy.Mode.OFF;
    }

    /** What a call is charged; null if the policy doesn't apply to it. */
    @Nullable
    Charge of(@Nullable Object[] arguments) {
        if (isOff()) {
            return null;
        }
        long tokens = cost == null ? limit.cost(current) : Math.min(cost.of(arguments), limit.maxCost());
        RequestFacts request = key == null || limit.key().tier() != null ? current.facts() : null;
        String tierName = tier == null ? limit.key().tier(policy(), request) : tier.of(arguments);
        return key != null
                ? key.charge(limit, tokens, tierName, arguments)
                : limit.key().charge(policy(), tokens, request, tierName);
    }
}
