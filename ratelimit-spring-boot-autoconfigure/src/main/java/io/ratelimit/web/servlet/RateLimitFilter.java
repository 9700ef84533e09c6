package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RequestPolicy.Phase;
import io.ratelimit.web.servlet.rejection.LimitHeaders;
import io.ratelimit.web.servlet.rejection.RateLimitHeaders;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Supplier;
import org.springframework.web.filter.OncePerRequestFilter;

/**
 * Lets a request proceed, or rejects it, by the decision of the policies of one phase that cover it. Registered once for
 * each phase, before and after Spring Security.
 */
public class RateLimitFilter extends OncePerRequestFilter {

    private final Phase phase;
    private final String onceAttribute;
    private final Throttlers throttlers;
    private final Supplier<RequestPolicies> policies;
    private final LimitHeaders headers;
    private final Rejections rejections;

    /**
     * @param phase the phase of the enforced policies
     * @param policies supplies the policies of all phases at the first request, when the application's endpoints are known
     */
    public RateLimitFilter(
            Phase phase,
            Throttlers throttlers,
            Supplier<RequestPolicies> policies,
            LimitHeaders headers,
            Rejections rejections) {
        this.phase = phase;
        this.onceAttribute = RateLimitFilter.class.getName() + "." + phase;
        this.throttlers = throttlers;
        this.policies = policies;
        this.headers = headers;
        this.rejections = rejections;
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        RequestLedger ledger = RequestLedger.of(request);
        if (request.getDispatcherType() == DispatcherType.ERROR && !isChargedInErrorDispatch(request, ledger)) {
            chain.doFilter(request, response);
            return;
        }
        boolean actsOnCompletion =
                ledger.isNew() && (policies.get().refunds() || policies.get().settles());
        noteAuthentication(ledger, request);
        if (!ledger.enter(phase, request)) {
            chain.doFilter(request, response);
        } else if (actsOnCompletion) {
            filterAndComplete(ledger, request, response, chain);
        } else {
            filter(ledger, request, response, chain);
        }
    }

    /**
     * Returns whether the phase charges the request in its error dispatch: only if no filter has seen the request before.
     * After authentication only an authenticated request is charged: applications often permit error dispatches to all
     * clients, and strangers must not drain a bucket that accounts share.
     */
    private boolean isChargedInErrorDispatch(HttpServletRequest request, RequestLedger ledger) {
        return !ledger.isOfEarlierDispatch()
                && (phase == Phase.BEFORE_AUTHENTICATION || UserPrincipal.isAuthenticated(request));
    }

    private void filter(
            RequestLedger ledger, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        Decision decision;
        try {
            decision = throttlers.acquire(policies.get().charges(phase, request, ledger));
        } catch (InterruptedException whileQueued) {
            Thread.currentThread().interrupt();
            rejections.rejectInterrupted(request, response, () -> release(ledger, request));
            return;
        }
        if (decision.allowed()) {
            addHeaders(ledger, decision, response);
            proceed(ledger, request, response, chain);
        } else {
            release(ledger, request);
            rejections.reject(request, response, decision);
        }
    }

    private void noteAuthentication(RequestLedger ledger, HttpServletRequest request) {
        if (phase == Phase.AFTER_AUTHENTICATION && policies.get().refunds() && UserPrincipal.isAuthenticated(request)) {
            ledger.noteAuthenticated();
        }
    }

    /** Filters the request. When the response is complete, gives back refunded tokens and settles the other ones. */
    private void filterAndComplete(
            RequestLedger ledger, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        boolean failed = true;
        try {
            filter(ledger, request, response, chain);
            failed = false;
        } finally {
            if (failed) {
                int status = HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
                complete(ledger, response.isCommitted() ? response.getStatus() : status, request, response, true);
            } else if (request.isAsyncStarted()) {
                Runnable onCompletion = () -> complete(ledger, response.getStatus(), request, response, false);
                request.getAsyncContext().addListener(new CompletionListener(onCompletion));
            } else {
                complete(ledger, response.getStatus(), request, response, true);
            }
        }
    }

    /** @param mayWait whether this thread may wait for the settlements; not if it can be any thread of the application */
    private void complete(
            RequestLedger ledger,
            int status,
            HttpServletRequest request,
            HttpServletResponse response,
            boolean mayWait) {
        if (policies.get().refunds()) {
            ledger.refund(throttlers, status);
        }
        if (policies.get().settles()) {
            ledger.settle(throttlers, request, response, mayWait);
        }
    }

    private void addHeaders(RequestLedger ledger, Decision decision, HttpServletResponse response) {
        Answer before = ledger.tightest();
        ledger.add(decision, policies.get(), headers);
        Answer tightest = ledger.tightest();
        if (tightest != null && tightest != before) {
            RateLimitHeaders shown = headers.of(tightest.policy());
            if (before != null && headers.of(before.policy()) != shown) {
                headers.of(before.policy()).remove(response);
            }
            shown.write(tightest, response);
        }
    }

    /** Passes the request on. A call that is denied outside Spring MVC, as in another filter, is rejected here. */
    private void proceed(
            RequestLedger ledger, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        try {
            chain.doFilter(request, response);
        } catch (ServletException | RuntimeException failure) {
            if (!rejections.rejectCall(request, response, failure, () -> releaseUnhandled(ledger, request))) {
                throw failure;
            }
        }
    }

    /** Keeps the tokens if the request may have reached its handler: work was done before the call was denied. */
    private void releaseUnhandled(RequestLedger ledger, HttpServletRequest request) {
        if (policies.get().mayHaveReachedHandler(request)) {
            ledger.observePattern(request);
        } else {
            release(ledger, request);
        }
    }

    private void release(RequestLedger ledger, HttpServletRequest request) {
        ledger.giveBack(throttlers);
        ledger.observePattern(request);
    }

    /** Includes requests that the container answers itself, such as {@code TRACE}: they enter by their error dispatch only. */
    @Override
    protected boolean shouldNotFilterErrorDispatch() {
        return false;
    }

    /** Returns one name for each phase. Outside a container both filters would share one, and the second be skipped. */
    @Override
    protected String getAlreadyFilteredAttributeName() {
        return onceAttribute;
    }

    /** Runs an action at the end of the asynchronous work of a request. */
    private record CompletionListener(Runnable action) implements AsyncListener {

        @Override
        public void onComplete(AsyncEvent event) {
            action.run();
        }

        /** Registers again: the container drops listeners when a dispatched request starts asynchronous work again. */
        @Override
        public void onStartAsync(AsyncEvent event) {
            event.getAsyncContext().addListener(this);
        }

        @Override
        public void onTimeout(AsyncEvent event) {}

        @Override
        public void onError(AsyncEvent event) {}
    }
}
