package io.ratelimit.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import org.springframework.http.server.observation.ServerRequestObservationContext;
import org.springframework.web.filter.ServerHttpObservationFilter;

/**
 * The pattern under which {@code http.server.requests} counts a request. Spring MVC notes it when it finds the handler,
 * which a refused request never gets to.
 */
final class ObservedPattern {

    private ObservedPattern() {}

    /** Notes it where MVC hasn't: a pattern of the application, never a path. */
    static void note(HttpServletRequest request) {
        ServerRequestObservationContext observed =
                ServerHttpObservationFilter.findObservationContext(request).orElse(null);
        if (observed != null && observed.getPathPattern() == null) {
            String pattern = RequestBill.of(request).pattern();
            observed.setPathPattern(pattern);
        }
    }
}
