package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.actuate.RateLimitsEndpoint;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.EndpointId;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.core.Ordered;
import org.springframework.http.HttpMethod;
import org.springframework.web.HttpRequestMethodNotSupportedException;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;

/**
 * Answers a change that is sent to a read-only {@link RateLimitsEndpoint} with the reason. Such an endpoint has no operation
 * for changes, so the response would otherwise be a 405 without a reason.
 *
 * @param endpoints called with the first rejected change, since it needs all endpoints
 */
record ReadOnlyEndpointResolver(Supplier<PathMappedEndpoints> endpoints) implements HandlerExceptionResolver, Ordered {

    private static final EndpointId LIMITS = EndpointId.of(RateLimitsEndpoint.ID);
    private static final byte[] PROBLEM = """
            {"title":"Method Not Allowed","status":405,"detail":"limits are read-only here; to change them, set \
            'management.endpoint.ratelimits.access: unrestricted'"}""".getBytes(StandardCharsets.UTF_8);

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        if (!(failure instanceof HttpRequestMethodNotSupportedException notSupported)
                || !isChangeOfReadOnlyLimit(request, notSupported)) {
            return null;
        }
        try {
            response.setStatus(HttpServletResponse.SC_METHOD_NOT_ALLOWED);
            response.setHeader("Allow", "GET");
            response.setContentType("application/problem+json");
            response.setContentLength(PROBLEM.length);
            response.getOutputStream().write(PROBLEM);
        } catch (IOException disconnected) {
            throw new UncheckedIOException(disconnected);
        }
        return new ModelAndView();
    }

    private boolean isChangeOfReadOnlyLimit(
            HttpServletRequest request, HttpRequestMethodNotSupportedException notSupported) {
        String path = endpoints.get().getPath(LIMITS);
        boolean change =
                request.getMethod().equals("POST") || request.getMethod().equals("DELETE");
        return change
                && path != null
                && request.getRequestURI().contains(path + "/")
                && notSupported.getSupportedHttpMethods() != null
                && !notSupported.getSupportedHttpMethods().contains(HttpMethod.POST);
    }
}
