package io.ratelimit.web.servlet;

import io.ratelimit.Charge;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.policy.Phase;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.web.servlet.DispatcherServlet;

/** The policies that the filter enforces. Narrowest first: by the number of parts in the key, then by name. */
public final class RequestPolicies {

    private final List<RequestPolicy> all;
    private final Map<Phase, PolicyPaths> byPhase = new EnumMap<>(Phase.class);
    private final Map<String, RequestPolicy> byName = new HashMap<>();
    private final boolean refunds;
    private final boolean settles;
    private final Endpoints endpoints;
    private final ClientIpResolver clientIps;
    private final ThrottleListener listener;

    /**
     * @param listener is notified of requests that an exempt endpoint frees
     */
    public RequestPolicies(
            List<RequestPolicy> policies, Endpoints endpoints, ClientIp clientIp, ThrottleListener listener) {
        this(policies, endpoints, new ClientIpResolver(clientIp), listener);
    }

    private RequestPolicies(
            List<RequestPolicy> policies, Endpoints endpoints, ClientIpResolver clientIps, ThrottleListener listener) {
        List<RequestPolicy> sorted = new ArrayList<>(policies);
        sorted.sort(RequestPolicies::compare);
        this.all = List.copyOf(sorted);
        this.endpoints = endpoints;
        this.clientIps = clientIps;
        this.listener = listener;
        boolean anyRefunds = false;
        boolean anySettles = false;
        for (RequestPolicy policy : all) {
            byName.put(policy.policy().name(), policy);
            anyRefunds |= policy.refunds();
            anySettles |= policy.settle() != null;
        }
        this.refunds = anyRefunds;
        this.settles = anySettles;
        for (Phase phase : Phase.values()) {
            byPhase.put(phase, new PolicyPaths(enforcedIn(phase), endpoints.ignoresCase()));
        }
    }

    /** Compares policies so that the narrowest key comes first. */
    private static int compare(RequestPolicy one, RequestPolicy other) {
        int parts = other.key().parts().size() - one.key().parts().size();
        return parts != 0 ? parts : one.policy().name().compareTo(other.policy().name());
    }

    private List<RequestPolicy> enforcedIn(Phase phase) {
        List<RequestPolicy> enforced = new ArrayList<>();
        for (RequestPolicy policy : all) {
            if (policy.phase() == phase && policy.policy().mode() != Mode.OFF) {
                enforced.add(policy);
            }
        }
        return enforced;
    }

    /** Returns all policies, narrowest first. */
    public List<RequestPolicy> all() {
        return all;
    }

    ServletRequestFacts facts(HttpServletRequest request) {
        return new ServletRequestFacts(request, endpoints, clientIps);
    }

    boolean decideIn(Phase phase) {
        return !Objects.requireNonNull(byPhase.get(phase)).policies().isEmpty();
    }

    List<Charge> charges(Phase phase, ServletRequestFacts facts) {
        PolicyPaths paths = Objects.requireNonNull(byPhase.get(phase));
        List<RequestPolicy> policies = paths.policies();
        boolean exempt = endpoints.hasExempt() && facts.isExempt();
        List<Charge> charges = new ArrayList<>(Math.min(policies.size(), 4));
        if (paths.isEmpty()) {
            for (int i = 0; i < policies.size(); i++) {
                addCharge(policies.get(i), facts, exempt, charges);
            }
        } else {
            BitSet covering = paths.covering(facts.paths());
            for (int i = covering.nextSetBit(0); i >= 0; i = covering.nextSetBit(i + 1)) {
                addCharge(policies.get(i), facts, exempt, charges);
            }
        }
        return charges;
    }

    private void addCharge(RequestPolicy policy, ServletRequestFacts facts, boolean exempt, List<Charge> charges) {
        if (exempt && !policy.keepsCharges()) {
            reportExempt(policy, facts);
            return;
        }
        Charge charge = policy.charge(facts);
        if (charge != null) {
            charges.add(charge);
        }
    }

    /** Returns these policies for recorded requests: without a listener, and without warnings of addresses. */
    public RequestPolicies forRecordedRequests() {
        return new RequestPolicies(all, endpoints, clientIps.withoutWarning(), ThrottleListener.NONE);
    }

    /**
     * Returns the charge of a recorded request by one policy, as the filter makes it for a request that no exemption
     * frees; null if the policy doesn't cover the request. Reads only the facts that the policy needs.
     */
    public @Nullable Charge charge(RequestPolicy policy, HttpServletRequest request) {
        ServletRequestFacts facts = facts(request);
        PolicyPaths paths = Objects.requireNonNull(byPhase.get(policy.phase()));
        int i = paths.policies().indexOf(policy);
        return i >= 0 && (paths.isEmpty() || paths.covering(facts.paths()).get(i)) ? policy.charge(facts) : null;
    }

    private void reportExempt(RequestPolicy policy, ServletRequestFacts facts) {
        ThrottlePolicy current = policy.policy();
        if (policy.concerns(facts, current)) {
            listener.eventOccurred(current, ThrottleListener.Event.EXEMPT);
        }
    }

    /**
     * Returns the policies that may reject requests to an endpoint, narrowest first.
     *
     * @param pattern a pattern below the path of the {@code DispatcherServlet}, as in {@code /items/{id}}
     */
    public List<ThrottlePolicy> rejecting(String method, String pattern) {
        PathContainer path = endpoints.path(pattern);
        boolean exempt = endpoints.isExempt(method, pattern);
        return all.stream()
                .filter(policy -> (!exempt || policy.keepsCharges()) && policy.mayCover(method, path))
                .map(RequestPolicy::policy)
                .toList();
    }

    RequestPolicy of(Charge charge) {
        return Objects.requireNonNull(byName.get(charge.policy().name()));
    }

    /**
     * Returns whether the request may have reached its handler. It certainly has not only while Spring MVC, for which it
     * is meant, has not begun to process it. Other servlets are unknown.
     */
    boolean mayHaveReachedHandler(HttpServletRequest request) {
        return !endpoints.targetsDispatcher(request)
                || request.getAttribute(DispatcherServlet.WEB_APPLICATION_CONTEXT_ATTRIBUTE) != null;
    }

    /** Returns whether any policy may give tokens back when the response is complete. */
    boolean refunds() {
        return refunds;
    }

    /** Returns whether any policy may give tokens back, or settle requests, when the response is complete. */
    boolean actOnCompletion() {
        return refunds || settles;
    }

    /** @throws IllegalArgumentException if requests of no policy of that name are settled by code */
    RequestPolicy settledByCode(String name) {
        RequestPolicy policy = byName.get(name);
        if (policy == null || !policy.isSettledByCode()) {
            String names = all.stream()
                    .filter(RequestPolicy::isSettledByCode)
                    .map(settled -> "'" + settled.policy().name() + "'")
                    .collect(Collectors.joining(", "));
            throw new IllegalArgumentException("no throttle policy '" + name + "' has 'settle: code'; "
                    + (names.isEmpty() ? "nor has any other" : "those that do are: " + names));
        }
        return policy;
    }

    void unsettled(RequestPolicy policy, String reason) {
        policy.failures().failed(policy.policy().name(), "its actual cost, so the estimate stands", reason);
        listener.eventOccurred(policy.policy(), ThrottleListener.Event.SETTLE_FAILURE);
    }
}
