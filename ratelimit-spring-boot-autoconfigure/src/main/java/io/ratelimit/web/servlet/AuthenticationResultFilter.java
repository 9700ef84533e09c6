package io.ratelimit.web.servlet;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import org.springframework.security.core.context.SecurityContextHolderStrategy;

/**
 * Records whether a request leaves the filter chain of Spring Security authenticated. This includes a request that the
 * chain answers itself: a form login answers with a redirect, and a user without the required right gets 403.
 *
 * <p>The filter stands inside the chain, behind the filter that clears the security context at the end. Each authentication
 * filter of Spring Security clears the context when credentials are wrong, whatever the response is.
 *
 * <p>An exception that leaves the chain proves nothing. The {@link RateLimitFilter} after authentication records a request
 * that the chain has passed on.
 */
public final class AuthenticationResultFilter implements Filter {

    private final SecurityContextHolderStrategy contexts;

    public AuthenticationResultFilter(SecurityContextHolderStrategy contexts) {
        this.contexts = contexts;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        chain.doFilter(request, response);
        RequestLedger ledger = request.getDispatcherType() == DispatcherType.REQUEST
                ? RequestLedger.find((HttpServletRequest) request)
                : null;
        if (ledger != null
                && ledger.refundsAuthenticated()
                && UserPrincipal.SpringSecurity.accepts(contexts.getContext().getAuthentication())) {
            ledger.noteAuthenticated();
        }
    }
}
