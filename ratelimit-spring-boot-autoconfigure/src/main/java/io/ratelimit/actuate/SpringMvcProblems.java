package io.ratelimit.actuate;

import io.ratelimit.actuate.RateLimitsProblems.Problem;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.core.Ordered;
import org.springframework.http.HttpMethod;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.HttpMediaTypeNotSupportedException;
import org.springframework.web.HttpRequestMethodNotSupportedException;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;

/**
 * Answers changes that Spring MVC rejects before the endpoint with the reason: one where limits are read-only, since such an
 * endpoint has no operation for changes, and one whose body can't be read.
 *
 * @param endpoints called with the first rejected change, since it needs all endpoints
 */
record SpringMvcProblems(ObjectProvider<PathMappedEndpoints> endpoints) implements HandlerExceptionResolver, Ordered {

    private static final Problem READ_ONLY = new Problem(
            "Method Not Allowed",
            HttpServletResponse.SC_METHOD_NOT_ALLOWED,
            "limits are read-only here; to change them, set 'management.endpoint.ratelimits.access: unrestricted'");
    private static final Problem UNREADABLE = new Problem(
            "Bad Request",
            HttpServletResponse.SC_BAD_REQUEST,
            "the body must be a JSON object with texts and numbers, such as"
                    + " {\\\"rate\\\": \\\"100/1s\\\", \\\"capacity\\\": 200}");
    private static final Problem NO_JSON = new Problem(
            "Unsupported Media Type",
            HttpServletResponse.SC_UNSUPPORTED_MEDIA_TYPE,
            "a change must be sent with 'Content-Type: application/json'");

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        Problem rejection = isOfLimit(request) ? rejection(request, failure) : null;
        if (rejection == null) {
            return null;
        }
        byte[] json = rejection.json();
        try {
            response.setStatus(rejection.status());
            if (rejection == READ_ONLY) {
                response.setHeader("Allow", "GET");
            }
            response.setContentType(RateLimitsProblems.PROBLEM_JSON.toString());
            response.setContentLength(json.length);
            response.getOutputStream().write(json);
        } catch (IOException disconnected) {
            throw new UncheckedIOException(disconnected);
        }
        return new ModelAndView();
    }

    private boolean isOfLimit(HttpServletRequest request) {
        String path = endpoints.getObject().getPath(RateLimitsProblems.ID);
        return path != null && request.getRequestURI().contains(path + "/");
    }

    private static @Nullable Problem rejection(HttpServletRequest request, Exception failure) {
        if (failure instanceof HttpMessageNotReadableException) {
            return UNREADABLE;
        }
        if (failure instanceof HttpMediaTypeNotSupportedException) {
            return NO_JSON;
        }
        return failure instanceof HttpRequestMethodNotSupportedException notSupported
                        && isChangeOfReadOnlyLimit(request, notSupported)
                ? READ_ONLY
                : null;
    }

    private static boolean isChangeOfReadOnlyLimit(
            HttpServletRequest request, HttpRequestMethodNotSupportedException notSupported) {
        boolean change =
                request.getMethod().equals("POST") || request.getMethod().equals("DELETE");
        return change
                && notSupported.getSupportedHttpMethods() != null
                && !notSupported.getSupportedHttpMethods().contains(HttpMethod.DELETE);
    }
}
