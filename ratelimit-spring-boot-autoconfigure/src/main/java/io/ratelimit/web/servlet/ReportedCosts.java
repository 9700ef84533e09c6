package io.ratelimit.web.servlet;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.ActualCost;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The actual costs of one request that its handler has set. Each charge is settled or given back once. Thread-safe. */
final class ReportedCosts implements ActualCost {

    private final RequestPolicies policies;
    private final Throttlers throttlers;
    private final List<Answer> charged;
    private final @Nullable Long[] costs;
    private final boolean[] closed; // the charges that are settled or given back
    private boolean ended; // a cost that is set then is settled at once

    ReportedCosts(RequestPolicies policies, Throttlers throttlers, List<Answer> charged) {
        this.policies = policies;
        this.throttlers = throttlers;
        this.charged = charged;
        this.costs = new Long[charged.size()];
        this.closed = new boolean[charged.size()];
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
        if (closed[charge]) {
            return false;
        }
        costs[charge] = cost;
        if (ended) {
            settle(charge);
        }
        return true;
    }

    /** Ends the request. Each of its open charges is settled once: by the cost that is set, or else by the next one. */
    synchronized void settleEach() {
        ended = true;
        for (int charge = 0; charge < costs.length; charge++) {
            settle(charge);
        }
    }

    private void settle(int charge) {
        Long cost = costs[charge];
        if (cost != null && !closed[charge]) {
            closed[charge] = true;
            Answer answer = charged.get(charge);
            policies.of(answer.charge()).settle(answer, () -> cost, throttlers, false);
        }
    }

    /** Closes charges, so that no cost of them can be set any more. Returns those that were open. */
    synchronized List<Answer> close(List<Answer> charges) {
        List<Answer> open = new ArrayList<>(charges.size());
        for (Answer answer : charges) {
            int charge = charged.indexOf(answer);
            if (charge < 0 || !closed[charge]) {
                open.add(answer);
            }
            if (charge >= 0) {
                closed[charge] = true;
            }
        }
        return open;
    }

    /** Returns the cost that was set for one of the charges, or null if there is none. */
    synchronized @Nullable Long of(Answer taken) {
        int charge = charged.indexOf(taken);
        return charge < 0 ? null : costs[charge];
    }
}
