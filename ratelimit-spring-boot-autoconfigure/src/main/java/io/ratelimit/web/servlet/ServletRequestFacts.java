package io.ratelimit.web.servlet;

import io.ratelimit.key.ClientIp;
import io.ratelimit.key.RequestFacts;
import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.RequestPath;
import org.springframework.web.cors.CorsUtils;

/** The facts of a servlet request. Used by one thread. */
final class ServletRequestFacts implements RequestFacts {

    private static final int IPV6_PREFIX = 64;
    private static final PathContainer.Options AS_IT_IS = PathContainer.Options.create('/', false);

    private final HttpServletRequest request;
    private final Endpoints endpoints;
    private @Nullable List<PathContainer> paths;
    private @Nullable String endpoint;
    private @Nullable String ip;

    ServletRequestFacts(HttpServletRequest request, Endpoints endpoints) {
        this.request = request;
        this.endpoints = endpoints;
    }

    /**
     * The paths below the context path, with the servlet's own, that the request may be taken to ask for: first as
     * Spring MVC reads it, and where a container would read it otherwise, as that does; none where MVC can't read it.
     */
    List<PathContainer> paths() {
        if (paths == null) {
            paths = parse(request);
        }
        return paths;
    }

    private static List<PathContainer> parse(HttpServletRequest request) {
        try {
            RequestPath whole = RequestPath.parse(request.getRequestURI(), request.getContextPath());
            PathContainer path = whole.subPath(whole.contextPath().elements().size());
            return isPlain(path) ? List.of(path) : List.of(path, pathOfContainer(request));
        } catch (IllegalArgumentException unreadable) {
            return List.of();
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
        return !path.elements().isEmpty();
    }

    /** Also of {@code ;a=b} nothing is left when the parameters are gone; and some containers decode slashes. */
    private static boolean isDropped(PathContainer.PathSegment segment) {
        String text = segment.valueToMatch();
        return text.isEmpty()
                || text.equals(".")
                || text.equals("..")
                || text.indexOf('/') >= 0
                || text.indexOf('\\') >= 0;
    }

    /** The path by which the container chose the servlet: decoded, without parameters, empty segments and dots. */
    private static PathContainer pathOfContainer(HttpServletRequest request) {
        String below = request.getPathInfo();
        String path = request.getServletPath() + (below == null ? "" : below);
        return PathContainer.parsePath(path.isEmpty() ? "/" : path, AS_IT_IS);
    }

    /**
     * Whether this is a preflight that a browser sends ahead of a request: for Spring MVC to answer, and without
     * credentials. With them it may be somebody who tries passwords where nobody counts.
     */
    boolean isPreflight() {
        return CorsUtils.isPreFlightRequest(request)
                && endpoints.isMine(request)
                && request.getHeader(HttpHeaders.AUTHORIZATION) == null
                && request.getHeader(HttpHeaders.COOKIE) == null;
    }

    @Override
    public String method() {
        return request.getMethod();
    }

    @Override
    public String endpoint() {
        if (endpoint == null) {
            endpoint = paths().isEmpty() ? EndpointIndex.NONE : endpoints.endpoint(request, paths().get(0));
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
