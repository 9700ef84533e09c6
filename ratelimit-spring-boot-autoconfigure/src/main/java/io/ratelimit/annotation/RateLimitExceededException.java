package io.ratelimit.annotation;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;

/**
 * Thrown when a limit denies a call of a {@link RateLimited} method. The call is not made. If the exception leaves a web
 * request, the request is rejected as the filter rejects requests. The exception has no stack trace, because it is thrown
 * often under load.
 */
public final class RateLimitExceededException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final Decision decision;
    private final String policy;

    /** @throws IllegalStateException if the decision allows the call */
    public RateLimitExceededException(Decision decision) {
        super(decision.describe("call"), null, false, false);
        this.decision = decision;
        this.policy = decision.decisiveDenial().policy().name();
    }

    /**
     * Returns the decision of all limits of the call. After deserialization the decision has its outcome and its numbers,
     * but no answers of single policies.
     */
    public Decision decision() {
        return decision;
    }

    /** Returns the name of the policy that denied the call. If there are several, the policy has the narrowest key. */
    public String policy() {
        return policy;
    }

    /**
     * Returns the time after which the same call could be allowed. It is zero if the call can never be allowed, because
     * its outcome isn't {@linkplain Outcome#isTemporary() temporary}.
     */
    public Duration retryAfter() {
        return decision.retryAfter();
    }
}
