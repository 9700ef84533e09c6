package io.ratelimit.annotation;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.key.RequestKey;

/**
 * A policy for the calls of annotated methods: one of the configuration, or an inline limit.
 *
 * @param throttler the throttler of the policy
 * @param key the key of a call if the annotation has none
 * @param cost the tokens of a call if the annotation has no cost; its maximum also holds for costs of annotations
 * @param failures notified if the cost, the key or the tier of a call can't be computed
 */
public record AnnotatedPolicy(PolicyThrottler throttler, RequestKey key, RequestCost cost, FailureListener failures) {

    /** Returns the policy with its present limits. */
    ThrottlePolicy policy() {
        return throttler.policy();
    }

    /** Returns the policy's own cost of a call. A cost that depends on a request is 1 if there is no request. */
    long cost(Current current) {
        Long constant = cost.constant();
        RequestFacts request = constant == null ? current.facts() : null;
        return request == null ? cost.minTokens() : cost.tokens(request, policy().name(), failures);
    }
}
