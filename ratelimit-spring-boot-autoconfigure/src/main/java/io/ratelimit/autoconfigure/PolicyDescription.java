package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.autoconfigure.RateLimitProperties.Policy;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.web.servlet.RejectionDelay;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * A policy in words, as the log has it when the application starts.
 *
 * @param unit what it limits, such as a request
 * @param status of a refusal
 * @param delay of a refusal
 * @param place of its buckets
 */
public record PolicyDescription(
        ThrottlePolicy policy,
        RequestKey key,
        RequestCost cost,
        String unit,
        int status,
        RejectionDelay delay,
        String place) {

    private static final int TOO_MANY_REQUESTS = 429;

    /**
     * @param properties what the configuration says of the policy, if it does
     */
    public static PolicyDescription of(
            ThrottlePolicy policy, RequestKey key, RequestCost cost, String unit, RateLimitProperties properties) {
        Policy configured = properties.policies().get(policy.name());
        return new PolicyDescription(
                policy,
                key,
                cost,
                unit,
                configured == null ? TOO_MANY_REQUESTS : configured.status(),
                configured == null ? RejectionDelay.NONE : configured.rejectionDelay(),
                PolicyPlace.of(policy, properties));
    }

    /** With all but where it applies. */
    @Override
    public String toString() {
        return "Throttle policy '" + policy.name() + "' " + mode() + ": " + policy.spec() + buckets() + tokens()
                + tiers()
                + (key.overrides().isEmpty() ? "" : ", " + key.overrides().size() + " of them overridden")
                + (status == TOO_MANY_REQUESTS ? "" : ", status " + status)
                + (delay.isNone() ? "" : ", refusals " + delay + " late")
                + (waits() ? ", " + policy.waiting() : "")
                + ", " + place;
    }

    private String mode() {
        return switch (policy.mode()) {
            case ENFORCE -> "is enforced";
            case SHADOW -> "is in shadow mode (refuses nothing" + (waits() ? ", keeps nobody waiting)" : ")");
            case OFF -> "is off";
        };
    }

    private boolean waits() {
        return !policy.waiting().maxWait().isZero();
    }

    private String buckets() {
        return policy.isGlobal()
                ? ", one bucket"
                : ", a bucket for each " + String.join(" and ", policy.key())
                        + switch (key.onMissing()) {
                            case SKIP -> " (skips a " + unit + " that lacks one)";
                            case DENY -> " (denies a " + unit + " that lacks one)";
                            case CLIENT_IP, SHARED -> "";
                        };
    }

    private String tokens() {
        Long constant = cost.constant();
        return constant == null
                ? ", " + cost.describe()
                : cost.least() == 1 ? "" : ", " + cost.least() + " tokens a " + unit;
    }

    private String tiers() {
        return key.tier() == null
                ? ""
                : new TreeMap<>(policy.tiers())
                                .entrySet().stream()
                                        .map(tier -> tier.getKey() + ": " + tier.getValue())
                                        .collect(Collectors.joining("; ", ", in tiers (", ")"))
                        + " by " + key.tier();
    }
}
