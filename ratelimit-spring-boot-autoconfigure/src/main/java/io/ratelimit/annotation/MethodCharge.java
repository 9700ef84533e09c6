package io.ratelimit.annotation;

import io.ratelimit.Charge;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Waiting;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What one limit charges the calls of a method.
 *
 * @param place the annotation, as messages name it
 * @param limit a policy of the configuration, or a limit of its own
 * @param key in place of the policy's
 * @param cost gives the tokens, in place of the policy's cost; what is no number of at least 1 counts as 1
 * @param tier gives the name of the tier, in place of the policy's; a call for which it gives none belongs to none
 * @param maxWait how long a call may wait, in place of the policy's wait
 * @param fallback asked when the limit refuses a call
 */
record MethodCharge(
        String place,
        AnnotatedPolicy limit,
        @Nullable CallKey key,
        @Nullable CallValue cost,
        @Nullable CallValue tier,
        @Nullable Duration maxWait,
        @Nullable Fallback fallback,
        CurrentRequest current) {

    ThrottlePolicy policy() {
        return limit.policy();
    }

    int keySize() {
        return Math.max(policy().key().size(), key == null ? 0 : 1);
    }

    String describeKey() {
        return key == null ? "" : ", a bucket for each " + key.text();
    }

    String describeWait() {
        return maxWait == null
                ? ""
                : ", where " + new Waiting(maxWait, policy().waiting().queueLimit());
    }

    boolean letsWait() {
        return !(maxWait == null ? policy().waiting().maxWait() : maxWait).isZero();
    }

    boolean isConstant() {
        boolean constantKey = key == null
                ? limit.key().parts().isEmpty()
                : key.isConstant() && limit.key().overrides().isEmpty();
        boolean constantCost = cost == null ? limit.cost().constant() != null : cost instanceof CallValue.Constant;
        boolean constantTier = tier == null && limit.key().tier() == null;
        return isOff() || constantKey && constantCost && constantTier;
    }

    private boolean isOff() {
        return policy().mode() == ThrottlePolicy.Mode.OFF;
    }

    /** What a call is charged; null if the policy doesn't apply to it. */
    @Nullable
    Charge of(@Nullable Object[] arguments) {
        Charge charge = isOff() ? null : charge(arguments);
        return charge == null || maxWait == null ? charge : charge.withMaxWait(maxWait);
    }

    private @Nullable Charge charge(@Nullable Object[] arguments) {
        long tokens = cost == null ? limit.cost(current) : limit.cost().cut(tokens(cost, arguments));
        RequestFacts request = key == null || limit.key().tier() != null ? current.facts() : null;
        String tierName = tier == null ? limit.key().tier(policy(), request) : tierName(tier, arguments);
        return key != null
                ? key.charge(tokens, tierName, arguments)
                : limit.key().charge(policy(), tokens, request, tierName);
    }

    private long tokens(CallValue cost, @Nullable Object[] arguments) {
        try {
            long tokens = RequestCost.tokens(cost.of(arguments));
            if (tokens >= 1) {
                return tokens;
            }
            limit.failures().failed(policy().name(), whatCost(), "below 1");
        } catch (RuntimeException failure) {
            limit.failures().failed(policy().name(), whatCost(), failure);
        }
        return 1;
    }

    private String whatCost() {
        return "the cost of " + place + ", which counted as 1";
    }

    private @Nullable String tierName(CallValue tier, @Nullable Object[] arguments) {
        try {
            Object value = tier.of(arguments);
            String name = value instanceof Enum<?> constant ? constant.name() : value == null ? null : value.toString();
            return name == null ? null : Keys.part(name, true);
        } catch (RuntimeException failure) {
            limit.failures().failed(policy().name(), "the tier of " + place + ", so its own rate held", failure);
            return null;
        }
    }
}
