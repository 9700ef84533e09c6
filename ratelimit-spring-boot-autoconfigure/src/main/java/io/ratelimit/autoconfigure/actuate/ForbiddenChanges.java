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
 * Says why {@link RateLimitsEndpoint} takes no change where it may only be read: it has no operation for it then, so the
 * answer would be a 405 without a reason.
 */
final class ForbiddenChanges implements HandlerExceptionResolver, Ordered {

    private static final EndpointId LIMITS = EndpointId.of(RateLimitsEndpoint.ID);
    private static final byte[] REASON = """
            {"title":"Method Not Allowed","status":405,"detail":"limits may only be read here: to change them, say \
            'management.endpoint.ratelimits.access: unrestricted'"}""".getBytes(StandardCharsets.UTF_8);

    private final Supplier<PathMappedEndpoints> endpoints;

    /** @param endpoints asked for with the first refusal */
    ForbiddenChanges(Supplier<PathMappedEndpoints> endpoints) {
        this.endpoints = endpoints;
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
        if (!(failure instanceof HttpRequestMethodNotSupportedException refused) || !isChange(request, refused)) {
            return null;
        }
        try {
            response.setStatus(HttpServletResponse.SC_METHOD_NOT_ALLOWED);
            response.setHeader("Allow", "GET");
            response.setContentType("application/problem+json");
            response.setContentLength(REASON.length);
            response.getOutputStream().write(REASON);
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
        return new ModelAndView();
    }

    /** Of a limit, and where reading is all that there is. */
    private boolean isChange(HttpServletRequest request, HttpRequestMethodNotSupportedException refused) {
        String path = endpoints.get().getPath(LIMITS);
        boolean wanted =
                request.getMethod().equals("POST") || request.getMethod().equals("DELETE");
        return wanted
                && path != null
                && request.getRequestURI().contains(path + "/")
                && refused.getSupportedHttpMethods() != null
                && !refused.getSupportedHttpMethods().contains(HttpMethod.POST);
    }
}
