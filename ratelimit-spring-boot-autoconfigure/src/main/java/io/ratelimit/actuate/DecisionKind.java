package io.ratelimit.actuate;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import org.jspecify.annotations.Nullable;

/** What a decision was for one of the policies that were asked. */
enum DecisionKind {
    /** The call went ahead, as far as this decision goes; of a policy in shadow mode: so it would have. */
    ALLOWED,
    /** The policy refused the call, perhaps with others. */
    DENIED,
    /** The policy is in shadow mode and would have refused the call. */
    SHADOW_DENIED,
    /** The backend that has the bucket failed, and the policy's rule for that refused the call. */
    FAILED;

    /**
     * The kind for the policy of an answer; null if the policy had no part in it: it would have allowed what another
     * refused, or is in shadow mode and its backend failed.
     */
    static @Nullable DecisionKind of(Decision whole, Answer answer) {
        if (answer.allowed()) {
            return whole.allowed() ? ALLOWED : null;
        }
        boolean failed = answer.decision().outcome() == Outcome.BACKEND_FAILED;
        if (answer.policy().mode() == Mode.SHADOW) {
            return failed ? null : SHADOW_DENIED;
        }
        return failed ? FAILED : DENIED;
    }
}
