package io.ratelimit.annotation;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;

/**
 * A call of a {@link RateLimited} method was refused, and not made. Has no stack trace: under load it is thrown often.
 * Where it leaves a web request, the request is refused as the filter refuses.
 */
public final class RateLimitExceededException extends RuntimeException {

    private static final long serialVersionUID = 1;

    private final transient Decision decision;
    private final String policy;

    /**
     * @param decision why
     * @throws IllegalStateException if it allows the call
     */
    public RateLimitExceededException(Decision decision) {
        super(message(decision), null, false, false);
        this.decision = decision;
        this.policy = decision.heaviestViolation().policy().name();
    }

    private static String message(Decision decision) {
        String policy = "'" + decision.heaviestViolation().policy().name() + "' policy";
        return switch (decision.outcome()) {
            case NEVER_FITS -> "the call can never be allowed by " + policy + ", it costs more than the limit";
            case MISSING_KEY -> "the call is refused by " + policy + ", it lacks what the limit is counted by";
            case TOO_LONG -> "the call would have to wait too long for " + policy + ", retry after " + millis(decision);
            case QUEUE_FULL -> "too many calls wait for " + policy + " already, retry after " + millis(decision);
            case BACKEND_FAILED -> "the limit of " + policy + " can't be asked, retry after " + millis(decision);
            default -> "the call is throttled by " + policy + ", retry after " + millis(decision);
        };
    }

    private static String millis(Decision decision) {
        return decision.retryAfter().plusNanos(999_999).toMillis() + " ms";
    }

    /** What all policies said. */
    public Decision decision() {
        return decision;
    }

    /** The name of the policy that refused; of several the one with the narrowest key. */
    public String policy() {
        return policy;
    }

    /**
     * The time after which the same call could go ahead; zero where no time can mend it, for its outcome is not
     * {@linkplain Outcome#isTemporary() temporary}.
     */
    public Duration retryAfter() {
        return decision.retryAfter();
    }
}
