package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * A policy in words, as the log has it when the application starts.
 *
 * @param unit what it limits, such as a request
 * @param status of a refusal
 */
public record PolicyDescription(ThrottlePolicy policy, RequestKey key, RequestCost cost, String unit, int status) {

    private static final int TOO_MANY_REQUESTS = 429;

    /** With all but where it applies. */
    @Override
    public String toString() {
        return "Throttle policy '" + policy.name() + "' " + mode() + ": " + policy.spec() + buckets() + tokens()
                + tiers()
                + (key.overrides().isEmpty() ? "" : ", " + key.overrides().size() + " of them overridden")
                + (status == TOO_MANY_REQUESTS ? "" : ", status " + status)
                + (waits() ? ", " + policy.waiting() : "")
                + ", in memory";
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
