package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.policy.Phase;
import io.ratelimit.web.servlet.OpenRequests.Completion;
import io.ratelimit.web.servlet.rejection.PolicyResponses;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * One request and its charges over both phases: it {@linkplain #enter enters} a phase, {@linkplain #decide decides}, and is
 * {@linkplain #complete completed} by the filter that it entered first. Kept in an attribute of the request, and used by
 * one thread at a time. Beside it, another thread may {@linkplain #completeUnread complete} it by the volatile fields.
 *
 * <p>A request is charged once for each phase, however often and wherever the filters are registered.
 */
final class RequestLedger {

    private static final String ATTRIBUTE = RequestLedger.class.getName();

    private final ServerLimits limits;
    private @Nullable Phase first;
    private DispatcherType cameBy = DispatcherType.REQUEST;
    private int enteredPhases;
    private List<Answer> taken = List.of(); // by the first phase that charged the request
    private List<Answer> takenLater = List.of();
    private volatile @Nullable Decision inFlight; // by the first phase whose policies count the request
    private volatile @Nullable Decision inFlightLater;
    private boolean unhandled;
    private RequestCourse course = RequestCourse.UNKNOWN;
    private @Nullable ServletRequestFacts facts;
    private @Nullable Answer tightest;
    private @Nullable RuntimeException rejectedCall;
    private volatile @Nullable ReportedCosts reportedCosts;
    private @Nullable Completion completion;

    private RequestLedger(ServerLimits limits) {
        this.limits = limits;
    }

    /** Returns the ledger of a request, or null if no filter has seen the request. */
    static @Nullable RequestLedger find(HttpServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof RequestLedger ledger ? ledger : null;
    }

    /** Returns the ledger of a request; creates it for a request without one. */
    static RequestLedger of(HttpServletRequest request, ServerLimits.Late limits) {
        RequestLedger ledger = find(request);
        if (ledger == null) {
            ledger = new RequestLedger(limits.get());
            request.setAttribute(ATTRIBUTE, ledger);
        }
        return ledger;
    }

    /** Enters a phase, and returns whether the phase decides about the request: for the first time, and where it may. */
    boolean enter(Phase phase, HttpServletRequest request, DispatcherType dispatch) {
        boolean again = (enteredPhases & 1 << phase.ordinal()) != 0 && !cameBy(dispatch);
        if (again || !isCharged(phase, request, dispatch)) {
            return false;
        }
        if (phase == Phase.AFTER_AUTHENTICATION
                && limits.policies().refunds()
                && UserPrincipal.isAuthenticated(request)) {
            course().noteAuthenticated();
        }
        int before = enteredPhases;
        enteredPhases |= 1 << phase.ordinal();
        cameBy = first == null ? dispatch : cameBy;
        boolean enters = enteredPhases != before;
        if (first == null || enters && dispatch == DispatcherType.ASYNC && completion == null) {
            first = phase; // nothing else will complete the request
        }
        return enters;
    }

    /**
     * Returns whether a phase charges the request in a dispatch: in the one by which the request came, and not in those that
     * follow, as for its error page. After authentication an error dispatch charges only an authenticated request:
     * applications often permit it to all clients, and strangers must not drain a bucket that accounts share.
     *
     * <p>A filter between both phases may forward or suspend a request. Its later dispatch then charges it after
     * authentication, if it is authenticated: a failed authentication may forward to a page too.
     */
    private boolean isCharged(Phase phase, HttpServletRequest request, DispatcherType dispatch) {
        boolean comes = first == null || cameBy(dispatch);
        boolean error = dispatch == DispatcherType.ERROR;
        if (phase == Phase.BEFORE_AUTHENTICATION || comes && !error) {
            return comes;
        }
        boolean errorPage = error || request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE) != null;
        return (comes || !errorPage) && UserPrincipal.isAuthenticated(request);
    }

    /** Returns whether the request came to the filters by a dispatch of this type. */
    boolean cameBy(DispatcherType dispatch) {
        return dispatch == cameBy;
    }

    /** Charges the request in a phase, and returns whether it may proceed. If not, its rejection has begun. */
    boolean decide(Phase phase, HttpServletRequest request, HttpServletResponse response) throws IOException {
        RequestPolicies policies = limits.policies();
        if (!policies.decideIn(phase)) {
            return true;
        }
        Decision decision;
        try {
            decision = limits.throttlers().acquire(policies.charges(phase, facts(request)));
        } catch (InterruptedException whileQueued) {
            Thread.currentThread().interrupt();
            limits.rejections().rejectInterrupted(request, response, () -> release(request));
            return false;
        }
        if (decision.allowed()) {
            add(decision);
            showTightest(decision, response);
            return true;
        }
        release(request);
        limits.rejections().reject(request, response, decision);
        return false;
    }

    /** Returns the facts of the request, as the calling filter sees it. */
    ServletRequestFacts facts(HttpServletRequest request) {
        facts = facts == null ? limits.policies().facts(request) : facts.seenAs(request);
        return facts;
    }

    /** Records the tokens that an allowed decision took, including those of policies in shadow mode. */
    private void add(Decision decision) {
        if (decision.isInFlight()) { // before what may fail for want of memory
            inFlightLater = inFlight == null ? null : decision;
            inFlight = inFlight == null ? decision : inFlight;
        }
        if (taken.isEmpty()) {
            taken = decision.taken();
        } else {
            takenLater = decision.taken();
        }
    }

    /** Ends the request for the policies that count it as in flight. */
    void leave() {
        try {
            if (inFlight != null) {
                inFlight.release();
            }
        } finally {
            if (inFlightLater != null) {
                inFlightLater.release();
            }
        }
    }

    /**
     * Shows the client the limit with the smallest share of its bucket left, over both phases: among policies with headers
     * that show their level.
     */
    private void showTightest(Decision decision, HttpServletResponse response) {
        Answer before = tightest;
        PolicyResponses responses = limits.rejections().responses();
        List<Answer> answers = decision.answers();
        double smallest = before == null ? Double.MAX_VALUE : share(before);
        for (int i = 0; i < answers.size(); i++) {
            Answer answer = answers.get(i);
            double share =
                    answer.spec().hasRate() ? share(answer) : Double.MAX_VALUE; // without a rate there is no level
            if (share < smallest && limits.policies().of(answer.charge()).showsLevel() && responses.show(answer)) {
                smallest = share;
                tightest = answer;
            }
        }
        if (tightest != null && tightest != before) {
            responses.replace(before, tightest, response);
        }
    }

    private static double share(Answer answer) {
        return (double) answer.remaining() / answer.spec().capacity();
    }

    /**
     * Gives back the tokens of a request that is rejected before its handler, except those of policies that keep them. There
     * is no actual cost of such a request.
     */
    private void release(HttpServletRequest request) {
        unhandled = true;
        leave();
        limits.throttlers().giveBack(remove(policy -> !policy.keepsCharges()));
        observePattern(request);
    }

    /**
     * Rejects the request if its exception is that of a denied or interrupted call, and returns whether it did. Keeps the
     * tokens if the request may have reached its handler: work was done before the call was denied.
     */
    boolean rejectCall(HttpServletRequest request, HttpServletResponse response, Exception failure) throws IOException {
        return limits.rejections().rejectCall(request, response, failure, () -> {
            leave();
            if (limits.policies().mayHaveReachedHandler(request)) {
                observePattern(request);
            } else {
                release(request);
            }
        });
    }

    RequestCourse course() {
        if (course == RequestCourse.UNKNOWN) {
            course = new RequestCourse();
        }
        return course;
    }

    /** Returns whether a policy that charged the request refunds authenticated requests. */
    boolean refundsAuthenticated() {
        return allTaken().stream()
                .anyMatch(answer -> limits.policies().of(answer.charge()).refundsAuthenticated());
    }

    /**
     * Completes the request where a filter is left, if it is the first that the request entered: it is no longer in flight,
     * refunded tokens are given back, and the other ones settled, at once or at the end of asynchronous work.
     */
    void complete(Phase phase, HttpServletRequest request, HttpServletResponse response, @Nullable Throwable failure) {
        if (phase != first || inFlight == null && !limits.policies().actOnCompletion()) {
            return;
        }
        if (failure != null) {
            course().noteFailure(failure);
            int status = HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
            complete(response.isCommitted() ? response.getStatus() : status, request, response);
        } else if (request.isAsyncStarted()) {
            completeOnEnd(request, response);
        } else {
            complete(response.getStatus(), request, response);
        }
    }

    /** Completes an asynchronous request at its end; one that has ended in the meantime is only no longer in flight. */
    private void completeOnEnd(HttpServletRequest request, HttpServletResponse response) {
        try {
            AsyncContext work = request.getAsyncContext();
            completion = limits.openRequests().open(this, request, response);
            work.addListener(completion);
        } catch (RuntimeException | Error ended) {
            leave();
            throw ended;
        }
    }

    /** Records that asynchronous work has ended, and that the container dispatches the request again. */
    void dispatch() {
        if (completion != null) {
            completion.dispatch();
        }
    }

    private void complete(int status, HttpServletRequest request, HttpServletResponse response) {
        leave();
        if (limits.policies().actOnCompletion()) {
            limits.throttlers().giveBack(refunded(status));
            settle(request, response, true);
        }
    }

    /** Completes an asynchronous request on a thread that must not wait: it can be any thread of the application. */
    void completeLater(HttpServletRequest request, HttpServletResponse response) {
        leave();
        if (course.isHandledLater() || response.isCommitted()) {
            limits.throttlers().giveBackLater(refunded(response.getStatus()));
        }
        if (course.isTimedOut()) {
            settle(request, response, false);
        } else if (!unhandled) {
            settleKnown(request, response);
        }
    }

    /** Completes an asynchronous request that may not be read any more, on any thread: settles costs that code sets. */
    void completeUnread() {
        leave();
        ReportedCosts reported = reportedCosts;
        if (reported != null) {
            reported.settleEach();
        }
    }

    /** Removes the tokens that come back with a response. A broken request gives back none. */
    private List<Answer> refunded(int status) {
        return course.isBroken() ? List.of() : remove(policy -> course.isRefundedBy(policy, status));
    }

    /**
     * Settles the request by the policies that find its actual cost. Their tokens can't be given back any more.
     *
     * @param mayWait whether this thread may wait for a remote store
     */
    private void settle(HttpServletRequest request, HttpServletResponse response, boolean mayWait) {
        if (unhandled) {
            return;
        }
        ReportedCosts reported = reportedCosts;
        for (Answer answer : close(allTaken())) {
            Long cost = reported == null ? null : reported.of(answer);
            RequestPolicy policy = limits.policies().of(answer.charge());
            policy.settle(answer, () -> policy.actualCost(request, response, cost), limits.throttlers(), mayWait);
        }
        taken = List.of();
        takenLater = List.of();
    }

    /**
     * Settles an asynchronous request by what is known of its cost: at its end, or when its connection broke, after which
     * Tomcat doesn't always complete it. A cost that the handler sets later is settled then.
     */
    void settleKnown(HttpServletRequest request, HttpServletResponse response) {
        ReportedCosts reported = reportedCosts;
        if (reported != null) {
            reported.settleEach();
        }
        List<Answer> unknown = new ArrayList<>();
        for (Answer answer : allTaken()) {
            RequestPolicy policy = limits.policies().of(answer.charge());
            Object cost = policy.actualCost(request, response, null);
            if (cost != null) {
                policy.settle(answer, () -> cost, limits.throttlers(), false);
            } else if (reported == null || !policy.isSettledByCode()) {
                unknown.add(answer);
            }
        }
        taken = unknown;
        takenLater = List.of();
        reportedCosts = null;
    }

    ReportedCosts reportedCosts() {
        ReportedCosts current = reportedCosts;
        if (current == null) {
            current = new ReportedCosts(limits.policies(), limits.throttlers(), allTaken());
            reportedCosts = current;
        }
        return current;
    }

    private List<Answer> remove(Predicate<RequestPolicy> returnsTokens) {
        List<Answer> all = allTaken();
        if (all.isEmpty()) {
            return all;
        }
        List<Answer> returned = new ArrayList<>(all.size());
        List<Answer> kept = new ArrayList<>(all.size());
        for (Answer answer : all) {
            (returnsTokens.test(limits.policies().of(answer.charge())) ? returned : kept).add(answer);
        }
        taken = kept;
        takenLater = List.of();
        return close(returned);
    }

    /** Returns those of the charges that aren't settled. Nothing else settles them any more. */
    private List<Answer> close(List<Answer> charges) {
        ReportedCosts reported = reportedCosts;
        return reported == null ? charges : reported.close(charges);
    }

    private List<Answer> allTaken() {
        if (takenLater.isEmpty()) {
            return taken;
        }
        List<Answer> all = new ArrayList<>(taken);
        all.addAll(takenLater);
        return all;
    }

    /** Sets the exception of the last call that was denied or interrupted; null forgets it. */
    void rejectedCall(@Nullable RuntimeException rejected) {
        rejectedCall = rejected;
    }

    @Nullable
    RuntimeException rejectedCall() {
        return rejectedCall;
    }

    void observePattern(HttpServletRequest request) {
        ServletRequestFacts.observePattern(request, facts);
    }
}
