package io.ratelimit.web.servlet;

import io.ratelimit.key.RequestFacts;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.RequestPath;
import org.springframework.web.cors.CorsUtils;
import org.springframework.web.util.UriUtils;
import org.springframework.web.util.WebUtils;

/** The facts of a servlet request, over all its filters. Used by one thread at a time. */
final class ServletRequestFacts implements RequestFacts {

    /** So that what an expression makes of a length that a client invents is no overflow. */
    private static final long LONGEST_CONTENT = 1L << 40;

    private static final PathContainer.Options AS_IT_IS = PathContainer.Options.create('/', false);

    private final Endpoints endpoints;
    private final ClientAddresses addresses;
    private final String method;
    private final String uri;
    private final String contextPath;
    private final String peer;
    private HttpServletRequest request;
    private @Nullable List<PathContainer> paths;
    private @Nullable String endpoint;
    private @Nullable String ip;
    private @Nullable Map<String, String> pathVariables;

    ServletRequestFacts(HttpServletRequest request, Endpoints endpoints, ClientAddresses addresses) {
        this.endpoints = endpoints;
        this.addresses = addresses;
        this.request = request;
        this.method = request.getMethod();
        this.uri = request.getRequestURI();
        this.contextPath = request.getContextPath();
        this.peer = request.getRemoteAddr();
    }

    /** The facts of the same request as a later filter sees it: what was found is kept where it still holds. */
    ServletRequestFacts of(HttpServletRequest later) {
        if (uri.equals(later.getRequestURI())
                && method.equals(later.getMethod())
                && contextPath.equals(later.getContextPath())
                && Objects.equals(peer, later.getRemoteAddr())) {
            request = later;
            return this;
        }
        return new ServletRequestFacts(later, endpoints, addresses);
    }

    /**
     * The paths below the context path, with the servlet's own, that the request may be taken to ask for: first as
     * Spring MVC reads it, and where a container would read it otherwise, as that does; none where MVC can't read it.
     */
    List<PathContainer> paths() {
        if (paths == null) {
            paths = parse();
        }
        return paths;
    }

    private List<PathContainer> parse() {
        try {
            PathContainer path = pathOfMvc();
            return isPlain() ? List.of(path) : List.of(path, pathOfContainer());
        } catch (IllegalArgumentException unreadable) {
            return List.of();
        }
    }

    private PathContainer pathOfMvc() {
        if (contextPath.isEmpty()) {
            return PathContainer.parsePath(uri);
        }
        RequestPath whole = RequestPath.parse(uri, contextPath);
        return whole.subPath(whole.contextPath().elements().size());
    }

    /**
     * Whether there is but one way to read the path: a container decodes it, and drops parameters and then empty
     * segments, {@code .} and {@code ..}; Spring MVC drops no segment.
     */
    private boolean isPlain() {
        for (int i = 0; i < uri.length(); i++) {
            char c = uri.charAt(i);
            if (c == '%' || c == ';' || c == '\\' || c == '/' && isDropped(i + 1)) {
                return false;
            }
        }
        return uri.length() > contextPath.length();
    }

    /** Whether the segment that begins there is empty, but for the last, or begins with a dot. */
    private boolean isDropped(int start) {
        return start < uri.length() && (uri.charAt(start) == '/' || uri.charAt(start) == '.');
    }

    /** The path by which the container chose the servlet: decoded, without parameters, empty segments and dots. */
    private PathContainer pathOfContainer() {
        return PathContainer.parsePath(path(), AS_IT_IS);
    }

    @Override
    public String path() {
        String below = request.getPathInfo();
        String path = request.getServletPath() + (below == null ? "" : below);
        return path.isEmpty() ? "/" : path;
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

    /** Whether only handlers that are exempt will get the request. */
    boolean isExempt() {
        return endpoints.isExempt(request, paths());
    }

    @Override
    public String method() {
        return method;
    }

    @Override
    public String endpoint() {
        if (endpoint == null) {
            endpoint = paths().isEmpty() ? EndpointIndex.NONE : endpoints.endpoint(request, paths().get(0));
        }
        return endpoint;
    }

    /** The pattern of the endpoint; null where there is none. */
    @Nullable
    String pattern() {
        return endpoints.pattern(endpoint());
    }

    @Override
    public String ip() {
        if (ip == null) {
            ip = addresses.client(peer, request);
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

    @Override
    public Set<String> roles() {
        return Authorities.of(request.getUserPrincipal());
    }

    @Override
    public long contentLength() {
        return Math.min(request.getContentLengthLong(), LONGEST_CONTENT);
    }

    @Override
    public @Nullable String query(String name) {
        String query = request.getQueryString();
        String value = QueryString.first(name, query);
        return value != null || query == null ? value : QueryString.first(name + "[]", query);
    }

    @Override
    public @Nullable String cookie(String name) {
        Cookie cookie = WebUtils.getCookie(request, name);
        return cookie == null ? null : decoded(cookie.getValue());
    }

    /** As Spring hands it to controllers, or one value would have many names. */
    private static String decoded(String value) {
        try {
            return value.indexOf('%') < 0 ? value : UriUtils.decode(value, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            return value;
        }
    }

    @Override
    public @Nullable String pathVariable(String name) {
        if (pathVariables == null) {
            pathVariables = paths().isEmpty() ? Map.of() : endpoints.pathVariables(request, paths().get(0));
        }
        return pathVariables.get(name);
    }

    @Override
    public @Nullable String session() {
        HttpSession session = request.getSession(false);
        return session == null ? null : session.getId();
    }
}
