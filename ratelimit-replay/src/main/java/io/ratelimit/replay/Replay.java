package io.ratelimit.replay;

import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.demand.Demand;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.RequestPolicy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Decides the requests of a log by real throttlers, in the order in which they began.
 *
 * <p>A log whose stamps are whole seconds doesn't show when in its second a request began. Such a log is decided twice,
 * by separate throttlers and clocks: with the requests of each second spread evenly over it, and with all of them at
 * its start.
 */
final class Replay {

    private static final Pattern FIREWALL = Pattern.compile("(?i)[;\\\\]|//|/\\.|%(?:00|2[5ef]|3b|5c)");

    private final RequestPolicies policies;
    private final RateLimitProperties properties;
    private final LoggedRequest request;
    private final boolean authenticates;
    private final Map<String, RequestPolicy> requestPolicies = new HashMap<>();
    private final Map<String, PolicyResult> results = new LinkedHashMap<>();
    private final RequestOrder order = new RequestOrder(this::decide);
    private final boolean refunds;
    private final Bins bins;
    private final long[] denied = new long[2];
    private @Nullable Throttle atOnce;
    private @Nullable Throttle spread;
    private @Nullable Observer observer;
    private boolean usersLogged;
    private boolean sessionsLogged;
    private long requests;
    private long withoutRequest;
    private long outsideContext;

    /** Receives each decision; for tests. */
    interface Observer {
        void decided(LogEntry entry, Decision decision);
    }

    Replay(ReplayPolicies policies, boolean authenticates) {
        this.policies = policies.requests();
        this.properties = policies.properties();
        this.request = policies.request();
        this.authenticates = authenticates;
        for (RequestPolicy policy : this.policies.all()) {
            if (policy.policy().mode() != Mode.OFF && policy.policy().spec().hasRate()) {
                requestPolicies.put(policy.policy().name(), policy);
                results.put(policy.policy().name(), new PolicyResult(policy.policy(), results.size() + 1));
            }
        }
        this.refunds = requestPolicies.values().stream().anyMatch(RequestPolicy::refunds);
        this.bins = new Bins(results.size() + 1);
    }

    void observe(Observer observer) {
        this.observer = observer;
    }

    void add(LogEntry entry) {
        usersLogged |= entry.user != null;
        sessionsLogged |= entry.session != null;
        if (!entry.hasRequest()) {
            withoutRequest++;
            return;
        }
        order.add(entry);
    }

    /** Decides all requests that are left. */
    void finish() {
        order.finish();
        if (atOnce != null && spread != null) {
            atOnce.clock.close();
            spread.clock.close();
        }
    }

    private void decide(LogEntry entry, long spreadNanos) {
        if (atOnce == null || spread == null) {
            atOnce = new Throttle(PolicyResult.AT_ONCE, entry.startNanos);
            spread = order.hasExactStamps() ? atOnce : new Throttle(PolicyResult.SPREAD, entry.startNanos);
        }
        String context = request.getContextPath();
        String path = entry.path;
        if (!path.startsWith(context) || path.length() > context.length() && path.charAt(context.length()) != '/') {
            outsideContext++;
            return;
        }
        requests++;
        bins.add(0, entry.startNanos);
        request.begin(entry, usersLogged, sessionsLogged);
        List<Charge> early = charges(Phase.BEFORE_AUTHENTICATION, entry);
        Call call = new Call(
                entry,
                early,
                !authenticates || passesAuthentication(entry) ? charges(Phase.AFTER_AUTHENTICATION, entry) : List.of());
        atOnce.decide(call, entry.startNanos);
        if (spread != atOnce) {
            spread.decide(call, spreadNanos);
        }
    }

    /** Returns whether a request got past what stands between the phases: the firewall and the authentication. */
    private static boolean passesAuthentication(LogEntry entry) {
        return entry.status != 401 && !isRejectedByFirewall(entry);
    }

    private static boolean isRejectedByFirewall(LogEntry entry) {
        return entry.status == 400 && FIREWALL.matcher(entry.path).find();
    }

    /** Returns the charges of a phase. A policy that needs a fact which the log lacks is left out, and counted. */
    private List<Charge> charges(Phase phase, LogEntry entry) {
        List<Charge> charges = new ArrayList<>();
        for (RequestPolicy policy : policies.all()) {
            PolicyResult result =
                    policy.phase() == phase ? results.get(policy.policy().name()) : null;
            if (result != null) {
                Charge charge = policies.charge(policy, request);
                if (charge != null && policy.refundsAuthenticated()) {
                    request.getUserPrincipal();
                }
                Set<String> unlogged = request.takeUnlogged();
                if (!unlogged.isEmpty()) {
                    result.countUndecided(unlogged);
                } else if (charge != null) {
                    charges.add(charge);
                    boolean byStatus = policy.refunds() && !policy.refundsAuthenticated();
                    result.withoutStatus += entry.status == 0 && byStatus ? 1 : 0;
                }
            }
        }
        return charges;
    }

    /** A request with its charges before and after authentication. */
    private record Call(LogEntry entry, List<Charge> early, List<Charge> late) {

        boolean mayWait() {
            return mayWait(early) || mayWait(late);
        }

        private static boolean mayWait(List<Charge> charges) {
            for (Charge charge : charges) {
                if (!charge.maxWait().isZero()) {
                    return true;
                }
            }
            return false;
        }
    }

    /** The throttlers and the clock of one arrangement of the requests in their seconds. */
    private final class Throttle implements ThrottleListener {

        private final int arrangement;
        private final ReplayClock clock;
        private final Throttlers throttlers;
        private final DemandListener demand;
        private @Nullable LogEntry current;
        private @Nullable RuntimeException failure;

        Throttle(int arrangement, long nanos) {
            this.arrangement = arrangement;
            this.clock = new ReplayClock(nanos);
            this.demand = new DemandListener(clock);
            this.throttlers = new Throttlers(
                    results.values().stream().map(result -> result.policy).toList(),
                    BucketStore.local(clock),
                    clock,
                    arrangement == PolicyResult.AT_ONCE ? ThrottleListener.of(List.of(this, demand)) : this);
        }

        void decide(Call call, long nanos) {
            clock.advanceTo(nanos);
            if (call.mayWait()) {
                clock.run(() -> pass(call));
            } else {
                pass(call);
            }
            if (failure != null) {
                throw new IllegalStateException(failure);
            }
        }

        /** Does what the two filters do: takes in both phases, and gives back on a denial and by the response. */
        private void pass(Call call) {
            LogEntry entry = call.entry;
            List<Answer> taken = new ArrayList<>();
            Decision decision = acquire(call.early, entry);
            if (decision.allowed()) {
                taken.addAll(decision.taken());
                decision = acquire(call.late, entry);
                taken.addAll(decision.taken());
            }
            if (!decision.allowed()) {
                denied[arrangement]++;
                giveBack(taken, policy -> !policy.keepsCharges());
            }
            if (refunds && !taken.isEmpty()) {
                refund(entry, decision, taken);
            }
            if (observer != null && arrangement == PolicyResult.AT_ONCE) {
                observer.decided(entry, decision);
            }
        }

        private void refund(LogEntry entry, Decision decision, List<Answer> taken) {
            int status = decision.allowed() ? entry.status : rejectionStatus(decision);
            long end = clock.nanoTime() + (decision.allowed() ? Math.max(entry.durationNanos, 0) : 0);
            boolean authenticated = entry.user != null && passesAuthentication(entry); // the name may be a tried one
            Predicate<RequestPolicy> refunded = policy -> policy.refunds(status, authenticated);
            if (end > clock.nanoTime()) {
                clock.callAt(end, () -> giveBack(taken, refunded));
            } else {
                giveBack(taken, refunded);
            }
        }

        private Decision acquire(List<Charge> charges, LogEntry entry) {
            current = entry;
            try {
                Decision decision = throttlers.acquire(charges);
                decision.release(); // a log doesn't show reliably which requests ran at the same time
                return decision;
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }

        private void giveBack(List<Answer> taken, Predicate<RequestPolicy> returns) {
            List<Answer> returned = new ArrayList<>();
            for (Answer answer : taken) {
                RequestPolicy policy = requestPolicies.get(answer.policy().name());
                if (policy != null && returns.test(policy)) {
                    returned.add(answer);
                }
            }
            taken.removeAll(returned);
            throttlers.giveBack(returned);
        }

        private int rejectionStatus(Decision decision) {
            RateLimitProperties.Policy policy =
                    properties.policies().get(decision.decisiveDenial().policy().name());
            return decision.outcome() == Outcome.MISSING_KEY ? 403 : policy == null ? 429 : policy.status();
        }

        /** Keeps a failure: the throttlers would leave out a listener that throws, and the totals would be wrong. */
        @Override
        public void decided(Decision decision) {
            try {
                LogEntry entry = Objects.requireNonNull(current);
                for (Answer answer : decision.answers()) {
                    Objects.requireNonNull(results.get(answer.policy().name())).count(arrangement, answer, entry, bins);
                }
            } catch (RuntimeException wrong) {
                failure = wrong;
            }
        }

        @Override
        public void eventOccurred(ThrottlePolicy policy, Event event) {
            PolicyResult result = results.get(policy.name());
            if (event == Event.OVERFLOW && arrangement == PolicyResult.AT_ONCE && result != null) {
                result.overflows++;
            }
        }
    }

    /** Returns the results of all policies that limit requests and are on. */
    List<PolicyResult> results() {
        return List.copyOf(results.values());
    }

    /** Returns the counts over time: all requests, then the denied ones of each policy. */
    Bins bins() {
        return bins;
    }

    /** Returns the demand of a policy or tier, with all requests of a second at its start; null if there is none. */
    @Nullable
    Demand demand(String policy, @Nullable String tier) {
        return atOnce == null ? null : atOnce.demand.demand(policy, tier);
    }

    long firstNanos() {
        return Math.max(bins.firstNanos(), 0);
    }

    long lastNanos() {
        return Math.max(order.latest(), 0);
    }

    long requests() {
        return requests;
    }

    /**
     * Returns the numbers of denied requests by arrangement: {@link PolicyResult#SPREAD}, {@link PolicyResult#AT_ONCE}.
     */
    long[] denied() {
        return order.hasExactStamps()
                ? new long[] {denied[PolicyResult.AT_ONCE], denied[PolicyResult.AT_ONCE]}
                : denied;
    }

    /** Returns whether stamps have fractions of seconds, so that there is only one arrangement. */
    boolean hasExactStamps() {
        return order.hasExactStamps();
    }

    long withoutRequest() {
        return withoutRequest;
    }

    long outsideContext() {
        return outsideContext;
    }

    long late() {
        return order.late();
    }
}
