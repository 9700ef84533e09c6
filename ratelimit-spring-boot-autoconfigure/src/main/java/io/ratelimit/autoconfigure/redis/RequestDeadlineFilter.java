package io.ratelimit.autoconfigure.redis;

import io.ratelimit.redis.RequestDeadline;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import java.io.IOException;

/** Says where a request begins and ends. */
record RequestDeadlineFilter(RequestDeadline deadline) implements Filter {

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        boolean outermost = deadline.open();
        try {
            chain.doFilter(request, response);
        } finally {
            if (outermost) {
                deadline.close();
            }
        }
    }
}
