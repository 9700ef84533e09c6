package io.ratelimit.web.servlet;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ApplicationListener;
import org.springframework.security.authentication.event.AbstractAuthenticationFailureEvent;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextHolderStrategy;
import org.springframework.security.web.header.HeaderWriterFilter;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/**
 * Makes Spring Security report whether it authenticated a request, for policies with {@code refund-on: authenticated}.
 * Spring Security applies the customizer to each {@link HttpSecurity} before the application's own configuration.
 *
 * <p>The listener records failed authentications of the request that is bound to the thread, such as in a controller that
 * calls the authentication manager.
 */
final class AuthenticationResults
        implements Customizer<HttpSecurity>, ApplicationListener<AbstractAuthenticationFailureEvent> {

    private final boolean required;
    private final ObjectProvider<SecurityContextHolderStrategy> contexts;

    /** @param required whether any policy refunds authenticated requests */
    AuthenticationResults(boolean required, ObjectProvider<SecurityContextHolderStrategy> contexts) {
        this.required = required;
        this.contexts = contexts;
    }

    @Override
    public void customize(HttpSecurity http) {
        if (required) {
            SecurityContextHolderStrategy strategy =
                    contexts.getIfAvailable(SecurityContextHolder::getContextHolderStrategy);
            http.addFilterBefore(new ResultFilter(strategy), HeaderWriterFilter.class);
        }
    }

    @Override
    public void onApplicationEvent(AbstractAuthenticationFailureEvent event) {
        try {
            RequestLedger ledger = RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound
                    ? RequestLedger.find(bound.getRequest())
                    : null;
            if (ledger != null) {
                ledger.course().noteFailedAuthentication();
            }
        } catch (IllegalStateException requestIsOver) {
            // a thread may outlive its request: the response is complete, so nothing can be refunded
        }
    }

    /**
     * Records whether a request leaves the filter chain of Spring Security authenticated. This includes a request that the
     * chain answers itself: a form login answers with a redirect, and a user without the required right gets 403.
     *
     * <p>The filter stands inside the chain, behind the filter that clears the security context at the end. Each
     * authentication filter of Spring Security clears the context when credentials are wrong, whatever the response is.
     *
     * <p>An exception that leaves the chain proves nothing. The {@link RateLimitFilter} after authentication records a
     * request that the chain has passed on.
     */
    private record ResultFilter(SecurityContextHolderStrategy contexts) implements Filter {

        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, response);
            RequestLedger ledger = request.getDispatcherType() == DispatcherType.REQUEST
                    ? RequestLedger.find((HttpServletRequest) request)
                    : null;
            if (ledger != null
                    && ledger.refundsAuthenticated()
                    && UserPrincipal.SpringSecurity.accepts(
                            contexts.getContext().getAuthentication())) {
                ledger.course().noteAuthenticated();
            }
        }
    }
}
