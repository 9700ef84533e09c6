package io.ratelimit.autoconfigure;

import io.ratelimit.ThrottlePolicy;

/** Where a policy's buckets are, in words. */
public final class PolicyPlace {

    private PolicyPlace() {}

    /** With what holds while they can't be had. */
    public static String of(ThrottlePolicy policy, RateLimitProperties properties) {
        if (properties.backendOf(policy) == BackendKind.LOCAL) {
            return "in memory";
        }
        return "on Redis (while it is away "
                + switch (properties.failureRuleOf(policy)) {
                    case LOCAL -> "in memory";
                    case ALLOW -> "all is allowed";
                    case DENY -> "all is refused";
                }
                + ")";
    }
}
