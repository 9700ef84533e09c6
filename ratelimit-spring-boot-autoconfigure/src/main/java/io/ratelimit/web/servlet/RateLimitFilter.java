package io.ratelimit.web.servlet;

import io.ratelimit.policy.Phase;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.web.filter.OncePerRequestFilter;

/**
 * Lets a request proceed, or rejects it, by the decision of the policies of one phase that cover it. Registered once for
 * each phase, before and after Spring Security.
 */
public final class RateLimitFilter extends OncePerRequestFilter {

    private final Phase phase;
    private final String onceAttribute;
    private final ServerLimits.Late limits;

    RateLimitFilter(Phase phase, ServerLimits.Late limits) {
        this.phase = phase;
        this.onceAttribute = RateLimitFilter.class.getName() + "." + phase;
        this.limits = limits;
    }

    /** Has the request enter the phase. Returns true unless it enters the phase for the first time. */
    @Override
    protected boolean shouldNotFilter(HttpServletRequest request) {
        return !RequestLedger.of(request, limits).enter(phase, request);
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        RequestLedger ledger = RequestLedger.of(request, limits);
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
}
