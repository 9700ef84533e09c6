package io.ratelimit.web.servlet;

import io.ratelimit.policy.Phase;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * Lets a request proceed, or rejects it, by the decision of the policies of one phase that cover it. Registered once for
 * each phase, before and after Spring Security.
 *
 * <p>It is no {@code OncePerRequestFilter}: the ledger knows the phases that the request entered, without two more
 * attributes for each request.
 */
final class RateLimitFilter implements Filter {

    private final Phase phase;
    private final ServerLimits.Late limits;

    RateLimitFilter(Phase phase, ServerLimits.Late limits) {
        this.phase = phase;
        this.limits = limits;
    }

    /** Passes requests on that don't enter the phase for the first time. */
    @Override
    public void doFilter(ServletRequest servletRequest, ServletResponse servletResponse, FilterChain chain)
            throws ServletException, IOException {
        HttpServletRequest request = (HttpServletRequest) servletRequest;
        HttpServletResponse response = (HttpServletResponse) servletResponse;
        RequestLedger ledger = RequestLedger.of(request, limits);
        if (ledger.enter(phase, request, request.getDispatcherType())) {
            enter(ledger, request, response, chain);
        } else {
            chain.doFilter(request, response);
        }
    }

    private void enter(
            RequestLedger ledger, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        Throwable failure = null;
        try {
            if (ledger.decide(phase, request, response)) {
                proceed(ledger, request, response, chain);
            }
        } catch (ServletException | IOException | RuntimeException | Error thrown) {
            failure = thrown;
            throw thrown;
        } finally {
            ledger.complete(phase, request, response, failure);
        }
    }

    /** Passes the request on. A call that is denied outside Spring MVC, as in another filter, is rejected here. */
    private static void proceed(
            RequestLedger ledger, HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        try {
            chain.doFilter(request, response);
        } catch (ServletException | RuntimeException failure) {
            if (!ledger.rejectCall(request, response, failure)) {
                throw failure;
            }
        }
    }
}
