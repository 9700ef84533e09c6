package io.ratelimit.annotation;

import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestKey;

/**
 * A policy that limits the calls of methods that name it, and no requests.
 *
 * @param throttler of the limit
 * @param key whose bucket, where the annotation has no key
 * @param cost the tokens of a call, where the annotation has no cost, and what a cost of the annotation is cut to
 * @param failures is told where cost, key or tier of a call can't be
 */
public record AnnotatedPolicy(Throttler throttler, RequestKey key, RequestCost cost, FailureListener failures) {

    /** The limit as it is now. */
    ThrottlePolicy policy() {
        return throttler.policy();
    }

    /** The policy's own cost of a call; 1 if it depends on a request and there is none. */
    long cost(CurrentRequest current) {
        Long constant = cost.constant();
        RequestFacts request = constant == null ? current.facts() : null;
        return request == null ? cost.least() : cost.tokens(request, policy().name(), failures);
    }
}
