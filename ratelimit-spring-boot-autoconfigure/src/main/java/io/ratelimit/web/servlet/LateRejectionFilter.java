package io.ratelimit.web.servlet;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/**
 * Answers the requests whose refusal was put off, when they are dispatched for it, and lets none of them further. For
 * asynchronous dispatches only, and before Spring Security: whatever the request was to pass, it has passed.
 */
public final class LateRejectionFilter implements Filter {

    private final Rejection rejection;

    public LateRejectionFilter(Rejection rejection) {
        this.rejection = rejection;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        LateRejection late = LateRejection.take(request);
        if (late == null) {
            chain.doFilter(request, response);
        } else {
            rejection.writeLate(late, (HttpServletResponse) response);
        }
    }
}
