package io.ratelimit.web.servlet;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.endpoint.RequestPath;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpSession;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.observation.ServerRequestObservationContext;
import org.springframework.util.StringUtils;
import org.springframework.web.cors.CorsUtils;
import org.springframework.web.filter.ServerHttpObservationFilter;
import org.springframework.web.util.UriUtils;
import org.springframework.web.util.WebUtils;

/** The facts of one servlet request, kept while it passes its filters. Used by one thread at a time. */
final class ServletRequestFacts implements RequestFacts {

    /** Keeps an expression from overflowing when a client sends an invented length. */
    private static final long MAX_CONTENT_LENGTH = 1L << 40;

    /**
     * The key of all requests whose HTTP/2 connection was closed before they began: the container no longer knows its
     * address. Clients without an address must not share a bucket with them.
     */
    private static final String CLOSED = "closed";

    private static final Set<String> UPLOADS = Set.of("POST", "PUT", "PATCH");

    private final Endpoints endpoints;
    private final ClientIpResolver clientIps;
    private final String method;
    private final String uri;
    private final String contextPath;
    private final @Nullable String peer;
    private HttpServletRequest request;
    private @Nullable List<RequestPath> paths;
    private @Nullable String endpoint;
    private @Nullable String ip;
    private @Nullable Map<String, String> pathVariables;

    ServletRequestFacts(HttpServletRequest request, Endpoints endpoints, ClientIpResolver clientIps) {
        this.endpoints = endpoints;
        this.clientIps = clientIps;
        this.request = request;
        this.method = request.getMethod();
        this.uri = request.getRequestURI();
        this.contextPath = request.getContextPath();
        this.peer = request.getRemoteAddr();
    }

    /** Returns the facts of the same request as a later filter sees it. Keeps what still holds. */
    ServletRequestFacts seenAs(HttpServletRequest later) {
        if (uri.equals(later.getRequestURI())
                && method.equals(later.getMethod())
                && contextPath.equals(later.getContextPath())
                && Objects.equals(peer, later.getRemoteAddr())) {
            request = later;
            return this;
        }
        return new ServletRequestFacts(later, endpoints, clientIps);
    }

    /**
     * Returns the paths that the request may mean, below the context path and with the servlet's own path: Spring MVC's
     * readings, and behind them the container's, where it may differ. Empty if MVC can't read the path.
     */
    List<RequestPath> paths() {
        if (paths == null) {
            paths = parse();
        }
        return paths;
    }

    private List<RequestPath> parse() {
        try {
            String path = uri.substring(contextLength());
            if (isPlain()) {
                return List.of(RequestPath.plain(path));
            }
            RequestPath parsed = RequestPath.sent(path);
            String ant = endpoints.antPath(request);
            return ant == null
                    ? List.of(parsed, RequestPath.decoded(path()))
                    : List.of(RequestPath.decoded(ant), parsed, RequestPath.decoded(path()));
        } catch (IllegalArgumentException unreadable) {
            return List.of();
        }
    }

    /**
     * Returns the length of the context path, which is cut off before the path is parsed. Spring MVC cuts it afterwards.
     *
     * @throws IllegalArgumentException if Spring MVC can't read the path
     */
    private int contextLength() {
        int context = contextPath.equals("/") ? 0 : contextPath.length();
        boolean wholeSegments = contextPath.startsWith("/") && !contextPath.endsWith("/");
        if (context > 0 && !(wholeSegments && (uri.length() == context || uri.startsWith("/", context)))) {
            throw new IllegalArgumentException("Invalid context path");
        }
        return context;
    }

    /**
     * Returns whether container and Spring MVC read the path alike. A container decodes the path, drops parameters, and
     * then drops empty segments, {@code .} and {@code ..}; Spring MVC drops no segment.
     */
    private boolean isPlain() {
        for (int i = 0; i < uri.length(); i++) {
            char c = uri.charAt(i);
            if (c == '%' || c == ';' || c == '\\' || c == '/' && isDropped(i + 1)) {
                return false;
            }
        }
        return uri.startsWith("/") && uri.length() > contextPath.length();
    }

    /** Returns whether the segment at this index begins with a dot, or is empty and not the last. */
    private boolean isDropped(int start) {
        return start < uri.length() && (uri.charAt(start) == '/' || uri.charAt(start) == '.');
    }

    /** Returns the path by which the container chose the servlet: decoded, without parameters, empty segments and dots. */
    @Override
    public String path() {
        String pathInfo = request.getPathInfo();
        String path = request.getServletPath() + (pathInfo == null ? "" : pathInfo);
        return path.isEmpty() ? "/" : path;
    }

    /**
     * Returns whether this is a CORS preflight that Spring MVC answers. A browser sends preflights without credentials; a
     * request with credentials counts, or a client could try passwords at no cost.
     */
    boolean isPreflight() {
        return CorsUtils.isPreFlightRequest(request)
                && endpoints.targetsDispatcher(request)
                && request.getHeader(HttpHeaders.AUTHORIZATION) == null
                && request.getHeader(HttpHeaders.COOKIE) == null;
    }

    /** Returns whether only exempt handlers can get the request. */
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
            endpoint = Endpoints.NONE;
            for (int i = 0; i < readings() && endpoint.equals(Endpoints.NONE); i++) {
                endpoint = endpoints.endpoint(request, paths().get(i));
            }
        }
        return endpoint;
    }

    /** Returns the number of Spring MVC's readings among the paths. */
    private int readings() {
        return paths().size() <= 1 ? paths().size() : paths().size() - 1;
    }

    @Override
    public String foldedEndpoint() {
        return endpoints.folded(endpoint());
    }

    @Nullable
    String pattern() {
        return endpoints.pattern(endpoint());
    }

    @Override
    public String ip() {
        if (ip == null) {
            boolean closed = peer == null && "HTTP/2.0".equals(request.getProtocol());
            ip = closed ? CLOSED : clientIps.resolve(peer, request);
        }
        return ip;
    }

    @Override
    public @Nullable String user() {
        return KeyPart.userOf(request.getUserPrincipal());
    }

    @Override
    public @Nullable String header(String name) {
        return request.getHeader(name);
    }

    @Override
    public Set<String> roles() {
        return UserPrincipal.authorities(request.getUserPrincipal());
    }

    @Override
    public @Nullable String claim(String name) {
        return UserPrincipal.claim(request.getUserPrincipal(), name);
    }

    @Override
    public long contentLength() {
        return Math.min(request.getContentLengthLong(), MAX_CONTENT_LENGTH);
    }

    @Override
    public @Nullable String query(String name) {
        if (isMultipartWithoutUpload()) {
            throw new IllegalStateException("the parts of a multipart body precede the query string");
        }
        String query = request.getQueryString();
        if (query == null) {
            return null;
        }
        String value = anyForm(name, query);
        String recased = recased(name, query);
        String other = recased == null
                ? null
                : value == null || isBoundLast(recased) ? anyForm(recased, query) : otherForm(recased, query);
        if (value != null && other != null && !value.equals(other)) {
            throw new IllegalStateException("data binding may find the value of another spelling");
        }
        return value != null ? value : other;
    }

    /** Returns whether a parameter is bound after the one with a capital: data binding sorts parameters by name. */
    private static boolean isBoundLast(String name) {
        return Character.isLowerCase(name.charAt(0));
    }

    /**
     * Returns the name with its first letter in the other case, by which data binding sets the same field; null if the
     * query string can't contain it.
     */
    private static @Nullable String recased(String name, String query) {
        String upper = StringUtils.capitalize(name);
        String recased = upper.equals(name) ? StringUtils.uncapitalize(name) : upper;
        boolean possible = !recased.equals(name) && (query.indexOf(recased.charAt(0)) >= 0 || query.indexOf('%') >= 0);
        return possible ? recased : null;
    }

    private static @Nullable String anyForm(String name, String query) {
        String value = QueryString.first(name, query);
        return value != null ? value : otherForm(name, query);
    }

    /**
     * Returns the value of a parameter that has another form of the name: {@code limit[]}, or {@code !limit}, by which
     * Spring's data binding sets a field that has no value. {@code _limit} removes the default of the field.
     */
    private static @Nullable String otherForm(String name, String query) {
        String indexed = QueryString.first(name + "[]", query);
        String preset = first("!", name, query);
        if (indexed != null && preset != null || first("_", name, query) != null) {
            throw new IllegalStateException("data binding may find another value than the query parameter has");
        }
        return indexed != null ? indexed : preset;
    }

    private static @Nullable String first(String prefix, String name, String query) {
        String value = QueryString.first(prefix + name, query);
        return value != null ? value : QueryString.first(prefix + name + "[]", query);
    }

    /**
     * Returns whether a request that has no use for a body has a multipart body. Spring MVC reads the parts of each method,
     * and containers put their values before the values of the query string: {@code @RequestParam} gets the part.
     */
    private boolean isMultipartWithoutUpload() {
        String type = request.getContentType();
        return type != null && type.regionMatches(true, 0, "multipart/", 0, 10) && !UPLOADS.contains(method);
    }

    @Override
    public @Nullable String cookie(String name) {
        Cookie cookie = WebUtils.getCookie(request, name);
        return cookie == null ? null : decoded(cookie.getValue());
    }

    /** Decodes a value as Spring does for controllers. Otherwise one value would have many spellings. */
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
            pathVariables = Map.of();
            for (int i = 0; i < readings() && pathVariables.isEmpty(); i++) {
                pathVariables = endpoints.pathVariables(request, paths().get(i));
            }
        }
        return pathVariables.get(name);
    }

    @Override
    public @Nullable String session() {
        HttpSession session = request.getSession(false);
        return session == null ? null : session.getId();
    }

    /**
     * Sets the pattern under which {@code http.server.requests} counts a rejected request, unless Spring MVC has set it.
     * MVC sets it when it finds the handler, and most rejected requests never get that far.
     */
    static void observePattern(HttpServletRequest request, @Nullable ServletRequestFacts facts) {
        ServerRequestObservationContext observation =
                ServerHttpObservationFilter.findObservationContext(request).orElse(null);
        if (observation != null && observation.getPathPattern() == null) {
            observation.setPathPattern(facts == null ? null : facts.pattern());
        }
    }
}
