package io.ratelimit.web.servlet;

import io.ratelimit.annotation.ActualCost;
import io.ratelimit.annotation.RateLimitExceededException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.core.MethodParameter;
import org.springframework.core.Ordered;
import org.springframework.web.bind.support.WebDataBinderFactory;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.method.support.HandlerMethodArgumentResolver;
import org.springframework.web.method.support.ModelAndViewContainer;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.servlet.mvc.method.annotation.ExceptionHandlerExceptionResolver;

/**
 * Rejects a request whose handler threw a {@link RateLimitExceededException}. The request's own charges are kept, because
 * the handler has done some of its work.
 *
 * <p>It precedes all exception handlers: a controller's own handler for any exception precedes a controller advice.
 */
record RejectedCallResolver(ServerLimits.Late limits) implements HandlerExceptionResolver, WebMvcConfigurer, Ordered {

    /** Answers rejected calls of exception handlers too. */
    @Override
    public void extendHandlerExceptionResolvers(List<HandlerExceptionResolver> resolvers) {
        int place = resolvers.size();
        while (place > 0 && !(resolvers.get(place - 1) instanceof ExceptionHandlerExceptionResolver)) {
            place--;
        }
        resolvers.add(place, behindExceptionHandlers());
    }

    /** Gives handlers the actual cost as an argument. */
    @Override
    public void addArgumentResolvers(List<HandlerMethodArgumentResolver> resolvers) {
        resolvers.add(new ActualCostResolver(limits));
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        RequestLedger ledger = RequestLedger.of(request, limits);
        ledger.rejectedCall(null);
        ledger.course().noteFailure(failure);
        return resolve(request, response, failure);
    }

    /**
     * Returns the resolver that stands behind the application's exception handlers. It rejects a request if a call was
     * rejected since exception handlers were tried, and none of them answered: Spring MVC drops the exception of an
     * exception handler and continues with the exception that it handled.
     */
    private HandlerExceptionResolver behindExceptionHandlers() {
        return (request, response, handler, failure) -> {
            RuntimeException rejected = RequestLedger.of(request, limits).rejectedCall();
            return rejected == null ? null : resolve(request, response, rejected);
        };
    }

    private @Nullable ModelAndView resolve(
            HttpServletRequest request, HttpServletResponse response, Exception failure) {
        Runnable beforeAnswer = () -> {
            RequestLedger ledger = RequestLedger.of(request, limits);
            ledger.leave();
            ledger.observePattern(request);
        };
        try {
            return limits.get().rejections().rejectCall(request, response, failure, beforeAnswer)
                    ? new ModelAndView()
                    : null;
        } catch (IOException clientIsGone) {
            throw new UncheckedIOException(clientIsGone);
        }
    }

    private record ActualCostResolver(ServerLimits.Late limits) implements HandlerMethodArgumentResolver {

        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            return parameter.getParameterType() == ActualCost.class;
        }

        @Override
        public Object resolveArgument(
                MethodParameter parameter,
                @Nullable ModelAndViewContainer model,
                NativeWebRequest request,
                @Nullable WebDataBinderFactory binders) {
            HttpServletRequest servletRequest = Objects.requireNonNull(
                    request.getNativeRequest(HttpServletRequest.class), "a request of a servlet");
            return RequestLedger.of(servletRequest, limits).reportedCosts();
        }
    }
}
