package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.Settle;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.rejection.LimitHeaders;
import io.ratelimit.web.servlet.rejection.RateLimitHeaders;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.observation.ServerRequestObservationContext;
import org.springframework.web.filter.ServerHttpObservationFilter;

/**
 * The charges of one request over both phases. Kept in an attribute of the request, and used by one thread at a time.
 *
 * <p>A request is charged once for each phase, however often and wherever the filters are registered.
 */
final class RequestLedger {

    private static final String ATTRIBUTE = RequestLedger.class.getName();

    private List<Answer> taken = List.of(); // by the first phase that charged the request
    private List<Answer> takenLater = List.of();
    private int enteredPhases;
    private boolean enteredByError;
    private boolean authenticated;
    private boolean authenticationFailed;
    private boolean unhandled;
    private boolean handledLater;
    private boolean broken;
    private boolean failedByRequest;
    private @Nullable RequestPolicies policies;
    private @Nullable ServletRequestFacts facts;
    private @Nullable Answer tightest;
    private @Nullable RuntimeException rejectedCall;
    private @Nullable ReportedCosts reportedCosts;

    /** Returns the ledger of a request, or null if no filter has seen the request. */
    static @Nullable RequestLedger find(HttpServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof RequestLedger ledger ? ledger : null;
    }

    /** Returns the ledger of a request; creates it for a request without one. */
    static RequestLedger of(HttpServletRequest request) {
        RequestLedger ledger = find(request);
        if (ledger == null) {
            ledger = new RequestLedger();
            request.setAttribute(ATTRIBUTE, ledger);
        }
        return ledger;
    }

    /** Returns whether the request has entered no phase yet. */
    boolean isNew() {
        return enteredPhases == 0;
    }

    /** Returns whether a filter has seen the request in another dispatch than an error dispatch. */
    boolean isOfEarlierDispatch() {
        return !isNew() && !enteredByError;
    }

    /** Enters a phase, and returns whether the request enters it for the first time. */
    boolean enter(Phase phase, HttpServletRequest request) {
        int before = enteredPhases;
        enteredByError |= isNew() && request.getDispatcherType() == DispatcherType.ERROR;
        enteredPhases |= 1 << phase.ordinal();
        return enteredPhases != before;
    }

    /** Returns the facts of the request, as the calling filter sees it. */
    ServletRequestFacts facts(HttpServletRequest request, Endpoints endpoints, ClientIpResolver clientIps) {
        facts = facts == null ? new ServletRequestFacts(request, endpoints, clientIps) : facts.seenAs(request);
        return facts;
    }

    /** Records the tokens that an allowed decision took, including those of policies in shadow mode. */
    void add(Decision decision, RequestPolicies policies, LimitHeaders headers) {
        this.policies = policies;
        if (taken.isEmpty()) {
            taken = decision.taken();
        } else {
            takenLater = decision.taken();
        }
        List<Answer> answers = decision.answers();
        double smallest = tightest == null ? Double.MAX_VALUE : share(tightest);
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            double share = share(answer);
            if (share < smallest
                    && policies.of(answer.charge()).showsLevel()
                    && headers.of(answer.policy()) != RateLimitHeaders.NONE) {
                smallest = share;
                tightest = answer;
            }
        }
    }

    private static double share(Answer answer) {
        return (double) answer.remaining() / answer.charge().spec().capacity();
    }

    /**
     * Returns the answer with the smallest share of its bucket left, among policies with headers that show their level; null
     * if there is none.
     */
    @Nullable
    Answer tightest() {
        return tightest;
    }

    /**
     * Gives back the tokens of a request that is rejected before its handler, except those of policies that keep them. There
     * is no actual cost of such a request.
     */
    void giveBack(Throttlers throttlers) {
        unhandled = true;
        throttlers.giveBack(remove(policy -> !policy.keepsCharges()));
    }

    /** Records that the request got past authentication with a principal. */
    void noteAuthenticated() {
        authenticated = true;
    }

    /**
     * Records that credentials were wrong. The request then counts as not authenticated, even with an authenticated
     * session: the session's owner could otherwise try passwords of other accounts at no cost.
     */
    void noteFailedAuthentication() {
        authenticationFailed = true;
    }

    /** Returns whether a policy that charged the request refunds authenticated requests. */
    boolean refundsAuthenticated() {
        RequestPolicies policies = this.policies;
        if (policies != null) {
            for (Answer answer : allTaken()) {
                RefundOn refundOn = policies.of(answer.charge()).refundOn();
                if (refundOn != null && refundOn.isAuthenticated()) {
                    return true;
                }
            }
        }
        return false;
    }

    /**
     * Records the end of an asynchronous dispatch: the handler had a result, and its response has been written. The status
     * of a request that ends without one is that of no handler.
     */
    void noteHandledLater() {
        handledLater = true;
    }

    /** Records that the time for asynchronous work ran out. */
    void noteTimeout() {
        broken = true;
    }

    /** Records an error of asynchronous work. Unless the handler's result has failed, it is one of the connection. */
    void noteError(@Nullable Throwable failure) {
        broken |= !handledLater || failure == null || failure instanceof IOException;
    }

    /** Records an exception that ended the request or its handler. */
    void noteFailure(Throwable failure) {
        broken |= RequestFailure.isDisconnect(failure);
        failedByRequest |= RequestFailure.isByRequest(failure);
    }

    /** Gives back the tokens that a complete asynchronous request took, on a thread that may wait. */
    void refundLater(Throttlers throttlers, HttpServletResponse response) {
        if (handledLater || response.isCommitted()) {
            throttlers.giveBackLater(refunded(response.getStatus()));
        }
    }

    /** Gives back the tokens of the policies that refund a response with this status. */
    void refund(Throttlers throttlers, int status) {
        throttlers.giveBack(refunded(status));
    }

    /**
     * Removes the tokens that come back with a response. A broken request gives back none: its client may have ended it
     * before its status was known. An error of the server that the client caused is no status of the server.
     */
    private List<Answer> refunded(int status) {
        boolean passed = authenticated && !authenticationFailed;
        int judged = failedByRequest && status >= HttpServletResponse.SC_INTERNAL_SERVER_ERROR ? 0 : status;
        return broken ? List.of() : remove(policy -> policy.refunds(judged, passed));
    }

    /** Returns the actual costs that the request's handler sets. */
    ReportedCosts reportedCosts(RequestPolicies policies) {
        ReportedCosts current = reportedCosts;
        if (current == null) {
            current = new ReportedCosts(
                    policies,
                    allTaken().stream().map(answer -> answer.policy().name()).collect(Collectors.toUnmodifiableSet()));
            reportedCosts = current;
        }
        return current;
    }

    /**
     * Settles the request by the policies that find its actual cost. Their tokens can't be given back any more.
     *
     * @param mayWait whether this thread may wait for a remote store
     */
    void settle(Throttlers throttlers, HttpServletRequest request, HttpServletResponse response, boolean mayWait) {
        RequestPolicies policies = this.policies;
        if (policies == null || unhandled) {
            return;
        }
        Map<String, Long> reported = reportedCosts == null ? Map.of() : reportedCosts.complete();
        for (Answer answer : allTaken()) {
            RequestPolicy policy = policies.of(answer.charge());
            Settle settle = policy.settle();
            if (settle != null) {
                Long cost = reported.get(answer.policy().name());
                policy.cost()
                        .settle(
                                answer,
                                () -> find(settle, request, response, cost),
                                "its actual cost, " + settle,
                                throttlers,
                                mayWait,
                                policy.failures());
            }
        }
        taken = List.of();
        takenLater = List.of();
    }

    /**
     * Returns the value that is read as the actual cost of a request; null if there is none. The headers of a rejection,
     * such as that of an annotated method that the handler calls, are no costs.
     *
     * @param reported the cost that the application's code set
     */
    private static @Nullable Object find(
            Settle settle, HttpServletRequest request, HttpServletResponse response, @Nullable Long reported) {
        return switch (settle.source()) {
            case CODE -> reported;
            case ATTRIBUTE -> request.getAttribute(settle.name());
            case RESPONSE_HEADER -> Rejections.isRejected(request) ? null : response.getHeader(settle.name());
        };
    }

    /** Removes and returns the tokens of some policies. */
    private List<Answer> remove(Predicate<RequestPolicy> returnsTokens) {
        RequestPolicies policies = this.policies;
        if (policies == null) {
            return List.of();
        }
        List<Answer> all = allTaken();
        List<Answer> returned = new ArrayList<>(all.size());
        List<Answer> kept = new ArrayList<>(all.size());
        for (Answer answer : all) {
            (returnsTokens.test(policies.of(answer.charge())) ? returned : kept).add(answer);
        }
        taken = kept;
        takenLater = List.of();
        return returned;
    }

    private List<Answer> allTaken() {
        List<Answer> all = new ArrayList<>(taken);
        all.addAll(takenLater);
        return all;
    }

    /** Sets the exception of the last call that was denied or interrupted; null forgets it. */
    void rejectedCall(@Nullable RuntimeException rejected) {
        rejectedCall = rejected;
    }

    /** Returns the exception of the last call that was denied or interrupted; null if there is none. */
    @Nullable
    RuntimeException rejectedCall() {
        return rejectedCall;
    }

    /**
     * Sets the pattern under which {@code http.server.requests} counts a rejected request, unless Spring MVC has set it.
     * MVC sets it when it finds the handler, and most rejected requests never get that far.
     */
    void observePattern(HttpServletRequest request) {
        ServerRequestObservationContext observation =
                ServerHttpObservationFilter.findObservationContext(request).orElse(null);
        if (observation != null && observation.getPathPattern() == null) {
            observation.setPathPattern(facts == null ? null : facts.pattern());
        }
    }
}
