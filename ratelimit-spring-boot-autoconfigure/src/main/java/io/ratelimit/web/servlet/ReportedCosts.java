package io.ratelimit.web.servlet;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The actual costs of one request that its handler has set. Thread-safe. */
final class ReportedCosts implements ActualCost {

    private final RequestPolicies policies;
    private final Throttlers throttlers;
    private final List<Answer> charged;
    private final @Nullable Long[] costs;
    private @Nullable Set<Answer> settledLater; // each when its cost is set; null until the request ends

    ReportedCosts(RequestPolicies policies, Throttlers throttlers, List<Answer> charged) {
        this.policies = policies;
        this.throttlers = throttlers;
        this.charged = charged;
        this.costs = new Long[charged.size()];
    }

    @Override
    public boolean settle(String policy, long cost) {
        RequestPolicy settled = policies.settledByCode(policy);
        int charge = indexOf(policy);
        if (charge < 0) {
            return false;
        }
        if (cost < 0 || cost > Throttlers.MAX_SETTLED_COST) {
            policies.unsettled(settled, "it must be between 0 and " + Throttlers.MAX_SETTLED_COST);
            return false;
        }
        if (!put(charge, cost)) {
            policies.unsettled(settled, "the response was complete before");
            return false;
        }
        return true;
    }

    private int indexOf(String policy) {
        int i = charged.size() - 1;
        while (i >= 0 && !charged.get(i).policy().name().equals(policy)) {
            i--;
        }
        return i;
    }

    private synchronized boolean put(int charge, long cost) {
        if (settledLater != null) {
            return settle(charged.get(charge), cost);
        }
        costs[charge] = cost;
        return true;
    }

    /**
     * Ends the request. Each of its remaining charges is settled once: by the cost that is set, or else by the next one.
     *
     * @param remaining charges that aren't refunded
     */
    synchronized void settleEach(List<Answer> remaining) {
        settledLater = new HashSet<>(remaining);
        for (Answer answer : remaining) {
            Long cost = of(answer);
            if (cost != null) {
                settle(answer, cost);
            }
        }
    }

    private boolean settle(Answer answer, long cost) {
        boolean open = settledLater != null && settledLater.remove(answer);
        if (open) {
            policies.of(answer.charge()).settle(answer, () -> cost, throttlers, false);
        }
        return open;
    }

    /** Ends the request, and keeps the costs as they are: none can be set any more. */
    synchronized void complete() {
        settledLater = new HashSet<>();
    }

    /** Returns the cost that was set for one of the charges, or null if there is none. */
    synchronized @Nullable Long of(Answer taken) {
        int charge = charged.indexOf(taken);
        return charge < 0 ? null : costs[charge];
    }
}
