package io.ratelimit.web.servlet;

import io.ratelimit.annotation.ActualCost;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.core.MethodParameter;
import org.springframework.web.bind.support.WebDataBinderFactory;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.method.support.HandlerMethodArgumentResolver;
import org.springframework.web.method.support.ModelAndViewContainer;

/** Resolves the {@link ActualCost} of the current request as an argument of a handler method. */
final class ActualCostResolver implements HandlerMethodArgumentResolver {

    private final ServerLimits.Late limits;

    ActualCostResolver(ServerLimits.Late limits) {
        this.limits = limits;
    }

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
        HttpServletRequest servletRequest =
                Objects.requireNonNull(request.getNativeRequest(HttpServletRequest.class), "a request of a servlet");
        return RequestLedger.of(servletRequest, limits).reportedCosts();
    }
}
