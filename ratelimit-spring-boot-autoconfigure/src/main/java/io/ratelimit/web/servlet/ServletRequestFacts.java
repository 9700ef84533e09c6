package io.ratelimit.web.servlet;

import io.ratelimit.key.ClientIp;
import io.ratelimit.key.RequestFacts;
import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.RequestPath;

/** The facts of a servlet request. Used by one thread. */
final class ServletRequestFacts implements RequestFacts {

    private static final int IPV6_PREFIX = 64;

    private final HttpServletRequest request;
    private final Endpoints endpoints;
    private final @Nullable PathContainer path;
    private final boolean plain;
    private @Nullable String endpoint;
    private @Nullable String ip;

    ServletRequestFacts(HttpServletRequest request, Endpoints endpoints) {
        this.request = request;
        this.endpoints = endpoints;
        this.path = parse(request);
        this.plain = path != null && isPlain(path);
    }

    /** As Spring MVC reads the path; null where it can't. */
    private static @Nullable PathContainer parse(HttpServletRequest request) {
        try {
            RequestPath whole = RequestPath.parse(request.getRequestURI(), request.getContextPath());
            return whole.subPath(whole.contextPath().elements().size());
        } catch (IllegalArgumentException unreadable) {
            return null;
        }
    }

    /** Whether no segment is empty, {@code .} or {@code ..}: a container drops those, and Spring MVC doesn't. */
    private static boolean isPlain(PathContainer path) {
        boolean afterSeparator = false;
        for (PathContainer.Element element : path.elements()) {
            boolean separator = element instanceof PathContainer.Separator;
            if (separator && afterSeparator || !separator && isDropped((PathContainer.PathSegment) element)) {
                return false;
            }
            afterSeparator = separator;
        }
        return true;
    }

    /** Also of {@code ;a=b} nothing is left when the parameters are gone. */
    private static boolean isDropped(PathContainer.PathSegment segment) {
        String text = segment.valueToMatch();
        return text.isEmpty() || text.equals(".") || text.equals("..");
    }

    HttpServletRequest request() {
        return request;
    }

    /**
     * The path below the context path, with the servlet's own; null where there is none that all who route the request
     * read alike.
     */
    @Nullable
    PathContainer path() {
        return plain ? path : null;
    }

    @Override
    public String method() {
        return request.getMethod();
    }

    @Override
    public String endpoint() {
        if (endpoint == null) {
            endpoint = path == null ? EndpointIndex.NONE : endpoints.endpoint(request, path);
        }
        return endpoint;
    }

    @Override
    public String ip() {
        if (ip == null) {
            ip = ClientIp.canonical(request.getRemoteAddr(), IPV6_PREFIX);
        }
        return ip;
    }

    @Override
    public @Nullable String user() {
        Principal principal = request.getUserPrincipal();
        return principal == null ? null : principal.getName();
    }

    @Override
    public @Nullable String header(String name) {
        return request.getHeader(name);
    }
}
