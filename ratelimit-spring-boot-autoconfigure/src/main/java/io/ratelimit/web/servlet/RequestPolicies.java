package io.ratelimit.web.servlet;

import io.ratelimit.Charge;
import io.ratelimit.ThrottleEvent;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The policies that the filter enforces, narrowest first: those with the most parts in their key, then by name. */
public final class RequestPolicies {

    private final List<RequestPolicy> all;
    private final Map<Phase, List<RequestPolicy>> byPhase = new EnumMap<>(Phase.class);
    private final Map<String, RequestPolicy> byName = new HashMap<>();
    private final boolean refunding;
    private final Endpoints endpoints;
    private final ClientAddresses addresses;
    private final ThrottleListener listener;

    /**
     * @param listener is told of requests that are free by their endpoint
     */
    public RequestPolicies(
            List<RequestPolicy> policies, Endpoints endpoints, ClientAddresses addresses, ThrottleListener listener) {
        List<RequestPolicy> sorted = new ArrayList<>(policies);
        sorted.sort(RequestPolicies::compare);
        this.all = List.copyOf(sorted);
        this.endpoints = endpoints;
        this.addresses = addresses;
        this.listener = listener;
        boolean anyRefunds = false;
        for (RequestPolicy policy : all) {
            byName.put(policy.policy().name(), policy);
            anyRefunds |= policy.refundOn() != null;
        }
        this.refunding = anyRefunds;
        for (Phase phase : Phase.values()) {
            byPhase.put(phase, askedIn(phase));
        }
    }

    /** Narrowest first. */
    private static int compare(RequestPolicy one, RequestPolicy other) {
        int parts = other.key().parts().size() - one.key().parts().size();
        return parts != 0 ? parts : one.policy().name().compareTo(other.policy().name());
    }

    private List<RequestPolicy> askedIn(Phase phase) {
        List<RequestPolicy> asked = new ArrayList<>();
        for (RequestPolicy policy : all) {
            if (policy.phase() == phase && policy.policy().mode() != Mode.OFF) {
                asked.add(policy);
            }
        }
        return List.copyOf(asked);
    }

    public List<RequestPolicy> all() {
        return all;
    }

    /** What a request is charged by the policies of a phase that apply to it. */
    List<Charge> charges(Phase phase, HttpServletRequest request, RequestBill bill) {
        List<RequestPolicy> policies = byPhase.getOrDefault(phase, List.of());
        if (policies.isEmpty()) {
            return List.of();
        }
        ServletRequestFacts facts = bill.facts(request, endpoints, addresses);
        boolean exempt = endpoints.hasExempt() && facts.isExempt();
        List<Charge> charges = new ArrayList<>(policies.size());
        for (int i = 0; i < policies.size(); i++) {
            RequestPolicy policy = policies.get(i);
            if (exempt && !policy.keepsCharges()) {
                tellExempt(policy, facts);
                continue;
            }
            Charge charge = policy.charge(facts);
            if (charge != null) {
                charges.add(charge);
            }
        }
        return charges;
    }

    private void tellExempt(RequestPolicy policy, ServletRequestFacts facts) {
        ThrottlePolicy now = policy.policy();
        if (policy.appliesTo(facts, now)) {
            listener.happened(now, ThrottleEvent.EXEMPT);
        }
    }

    /** The policy that a charge is of. */
    RequestPolicy of(Charge charge) {
        return Objects.requireNonNull(byName.get(charge.policy().name()));
    }

    /** Whether any policy may give back what it took when the response is known. */
    boolean refunds() {
        return refunding;
    }
}
