package io.ratelimit.web.servlet;

import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.Phase;
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
import org.jspecify.annotations.Nullable;
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
        Throwable failure = null;
        try {
            filter(ledger, request, response, chain);
        } catch (ServletException | IOException | RuntimeException | Error thrown) {
            failure = thrown;
            throw thrown;
        } finally {
            if (failure != null) {
                ledger.noteFailure(failure);
                int status = HttpServletResponse.SC_INTERNAL_SERVER_ERROR;
                complete(ledger, response.isCommitted() ? response.getStatus() : status, request, response);
            } else if (request.isAsyncStarted()) {
                request.getAsyncContext().addListener(new CompletionListener(ledger, request, response));
            } else {
                complete(ledger, response.getStatus(), request, response);
            }
        }
    }

    private void complete(RequestLedger ledger, int status, HttpServletRequest request, HttpServletResponse response) {
        if (policies.get().refunds()) {
            ledger.refund(throttlers, status);
        }
        if (policies.get().settles()) {
            ledger.settle(throttlers, request, response, true);
        }
    }

    /** Completes an asynchronous request on a thread that must not wait: it can be any thread of the application. */
    private void completeLater(RequestLedger ledger, HttpServletRequest request, HttpServletResponse response) {
        if (policies.get().refunds()) {
            ledger.refundLater(throttlers, response);
        }
        if (policies.get().settles()) {
            ledger.settle(throttlers, request, response, false);
        }
    }

    /**
     * Records the end of an asynchronous dispatch of a request.
     *
     * @param failure the exception that ended it, or null
     */
    public static void dispatched(HttpServletRequest request, @Nullable Throwable failure) {
        RequestLedger ledger = RequestLedger.find(request);
        if (ledger != null && request.getDispatcherType() == DispatcherType.ASYNC && !request.isAsyncStarted()) {
            ledger.noteHandledLater();
            if (failure != null) {
                ledger.noteFailure(failure);
            }
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

    /** Completes a request at the end of its asynchronous work. */
    private final class CompletionListener implements AsyncListener {

        private final RequestLedger ledger;
        private final HttpServletRequest request;
        private final HttpServletResponse response;

        CompletionListener(RequestLedger ledger, HttpServletRequest request, HttpServletResponse response) {
            this.ledger = ledger;
            this.request = request;
            this.response = response;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            completeLater(ledger, request, response);
        }

        /** Registers again: the container drops listeners when a dispatched request starts asynchronous work again. */
        @Override
        public void onStartAsync(AsyncEvent event) {
            event.getAsyncContext().addListener(this);
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            ledger.noteTimeout();
        }

        @Override
        public void onError(AsyncEvent event) {
            ledger.noteError(event.getThrowable());
        }
    }
}
