package io.ratelimit.web.servlet;

import io.ratelimit.annotation.RateLimitExceededException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;

/**
 * Refuses the request whose handler let a {@link RateLimitExceededException} go. Comes before all exception handlers, for
 * one in the controller that takes any exception would come before an advice.
 */
public final class RefusedCallResolver implements HandlerExceptionResolver, Ordered {

    private final RefusedCalls refusedCalls;

    public RefusedCallResolver(RefusedCalls refusedCalls) {
        this.refusedCalls = refusedCalls;
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        try {
            return refusedCalls.answer(request, response, failure) ? new ModelAndView() : null;
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }
}
