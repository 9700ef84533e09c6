package io.ratelimit.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The actual costs of one request that its handler has set. Thread-safe. */
final class ReportedCosts implements ActualCost {

    private final RequestPolicies policies;
    private final Set<String> charged;
    private final Map<String, Long> costs = new HashMap<>();
    private boolean complete;

    /** @param charged the policies whose tokens the request took */
    ReportedCosts(RequestPolicies policies, Set<String> charged) {
        this.policies = policies;
        this.charged = charged;
    }

    @Override
    public boolean settle(String policy, long cost) {
        RequestPolicy settled = policies.settledByCode(policy);
        if (!charged.contains(policy)) {
            return false;
        }
        if (cost < 0 || cost > Throttlers.MAX_SETTLED_COST) {
            policies.unsettled(settled, "it must be between 0 and " + Throttlers.MAX_SETTLED_COST);
            return false;
        }
        if (!put(policy, cost)) {
            policies.unsettled(settled, "the response was complete before");
            return false;
        }
        return true;
    }

    private synchronized boolean put(String policy, long cost) {
        if (!complete) {
            costs.put(policy, cost);
        }
        return !complete;
    }

    /** Returns the costs by policy. No cost can be set any more. */
    synchronized Map<String, Long> complete() {
        complete = true;
        return costs;
    }
}
