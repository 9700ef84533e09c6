package io.ratelimit.replay;

import io.ratelimit.Keys;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletMapping;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpSession;
import java.lang.reflect.Proxy;
import java.security.Principal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.security.authentication.AbstractAuthenticationToken;
import org.springframework.security.core.GrantedAuthority;
import org.springframework.security.oauth2.core.OAuth2AuthenticatedPrincipal;
import org.springframework.web.util.UriUtils;

/**
 * A servlet request with the facts of a log entry. It records each fact that is read and that the log doesn't contain,
 * so that a policy which needs the fact is not decided by a guess.
 */
final class LoggedRequest extends HttpServletRequestWrapper {

    private static final HttpServletRequest NOTHING = fixed(HttpServletRequest.class, null);

    /** The mapping of a servlet without a name, which stands for the DispatcherServlet. */
    private static final HttpServletMapping ANY_SERVLET = fixed(HttpServletMapping.class, "");

    private final String contextPath;
    private final boolean endpointsKnown;
    private final Set<String> unlogged = new TreeSet<>();
    private LogEntry entry = new LogEntry();
    private boolean usersLogged;
    private boolean sessionsLogged;
    private @Nullable String servletPath;

    LoggedRequest(String contextPath, boolean endpointsKnown) {
        super(NOTHING);
        this.contextPath = contextPath;
        this.endpointsKnown = endpointsKnown;
    }

    /** Returns an object whose methods all return this text; without a text, all throw. */
    private static <T> T fixed(Class<T> type, @Nullable String text) {
        Class<?>[] types = {type};
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), types, (proxy, method, arguments) -> {
            if (text == null) {
                throw new UnsupportedOperationException("a log doesn't contain " + method.getName());
            }
            return text;
        }));
    }

    void begin(LogEntry entry, boolean usersLogged, boolean sessionsLogged) {
        this.entry = entry;
        this.usersLogged = usersLogged;
        this.sessionsLogged = sessionsLogged;
        this.servletPath = null;
        unlogged.clear();
    }

    /** Returns the facts that were read since the last call and that the log doesn't contain. */
    Set<String> takeUnlogged() {
        if (unlogged.isEmpty()) {
            return Set.of();
        }
        Set<String> taken = new TreeSet<>(unlogged);
        unlogged.clear();
        return taken;
    }

    void miss(String fact) {
        unlogged.add(fact);
    }

    @Override
    public String getMethod() {
        return entry.method;
    }

    @Override
    public String getRequestURI() {
        return entry.path;
    }

    @Override
    public String getContextPath() {
        return contextPath;
    }

    /** Returns the path below the context path, decoded, without parameters, empty segments and dots. */
    @Override
    public String getServletPath() {
        if (servletPath == null) {
            List<String> segments = new ArrayList<>();
            String path = entry.path.substring(Math.min(contextPath.length(), entry.path.length()));
            for (String segment : path.split("/")) {
                int semicolon = segment.indexOf(';');
                String plain = decode(semicolon < 0 ? segment : segment.substring(0, semicolon));
                if (plain.equals("..") && !segments.isEmpty()) {
                    segments.remove(segments.size() - 1);
                } else if (!plain.isEmpty() && !plain.equals(".") && !plain.equals("..")) {
                    segments.add(plain);
                }
            }
            servletPath = "/" + String.join("/", segments) + (path.endsWith("/") && !segments.isEmpty() ? "/" : "");
        }
        return servletPath;
    }

    private static String decode(String text) {
        try {
            return text.indexOf('%') < 0 ? text : UriUtils.decode(text, "UTF-8");
        } catch (IllegalArgumentException malformed) {
            return text;
        }
    }

    @Override
    public @Nullable String getPathInfo() {
        return null;
    }

    @Override
    public @Nullable String getQueryString() {
        return entry.query;
    }

    /** Returns the address, or for the name of a host an address that stands for the name. */
    @Override
    public @Nullable String getRemoteAddr() {
        return entry.host == null || !isName(entry.host) ? entry.host : placeholder(entry.host);
    }

    /** Read only where a policy needs the address of a request that has none. */
    @Override
    public String getProtocol() {
        miss("ip");
        return "";
    }

    static boolean isName(String host) {
        if (host.indexOf(':') >= 0) {
            return false;
        }
        for (int i = 0; i < host.length(); i++) {
            char c = host.charAt(i);
            if ((c < '0' || c > '9') && c != '.') {
                return true;
            }
        }
        return false;
    }

    /** Returns an address of f000::/5, which is assigned to no one. Its first 64 bits depend on the name alone. */
    private static String placeholder(String name) {
        long bits = 0xF000_0000_0000_0000L | Keys.hash(name.toLowerCase(Locale.ROOT)) >>> 5;
        StringBuilder address = new StringBuilder(24);
        for (int shift = 48; shift >= 0; shift -= 16) {
            address.append(Long.toHexString(bits >>> shift & 0xFFFF)).append(':');
        }
        return address.append(':').toString();
    }

    @Override
    public @Nullable String getHeader(String name) {
        if (!entry.logsHeader(name)) {
            miss("header " + name);
        }
        return entry.header(name);
    }

    @Override
    public Enumeration<String> getHeaders(String name) {
        String value = getHeader(name);
        return Collections.enumeration(value == null ? List.of() : List.of(value));
    }

    /** Doesn't note the header as unlogged: a multipart body is assumed to be absent where a request needs no body. */
    @Override
    public @Nullable String getContentType() {
        return entry.header("content-type");
    }

    @Override
    public long getContentLengthLong() {
        String length = getHeader("Content-Length");
        try {
            return length == null ? -1 : Long.parseLong(length);
        } catch (NumberFormatException malformed) {
            return -1;
        }
    }

    @Override
    public Cookie @Nullable [] getCookies() {
        List<Cookie> cookies = new ArrayList<>();
        for (int i = 0; i < entry.cookies.size(); i++) {
            add(cookies, entry.cookies.get(i), entry.cookieValues[i]);
        }
        if (cookies.isEmpty() && entry.cookies.isEmpty()) {
            String header = entry.logsHeader("Cookie") ? entry.header("Cookie") : null;
            if (!entry.logsHeader("Cookie")) {
                miss("cookies");
            }
            for (String cookie : header == null ? new String[0] : header.split(";")) {
                int equals = cookie.indexOf('=');
                add(
                        cookies,
                        cookie.substring(0, Math.max(equals, 0)).trim(),
                        cookie.substring(equals + 1).trim());
            }
        }
        return cookies.toArray(Cookie[]::new);
    }

    private static void add(List<Cookie> cookies, String name, @Nullable String value) {
        try {
            if (value != null) {
                cookies.add(new Cookie(name, value));
            }
        } catch (IllegalArgumentException unusable) {
            // no container passes such a cookie on
        }
    }

    @Override
    public @Nullable Principal getUserPrincipal() {
        if (!usersLogged) {
            miss("user");
        }
        return entry.user == null ? null : new User(entry.user);
    }

    @Override
    public @Nullable HttpSession getSession(boolean create) {
        if (!sessionsLogged) {
            miss("session");
        }
        return entry.session == null ? null : fixed(HttpSession.class, entry.session);
    }

    /** Read whenever a policy needs the endpoint or a variable of its path. */
    @Override
    public HttpServletMapping getHttpServletMapping() {
        if (!endpointsKnown) {
            miss("endpoints (--endpoints)");
        }
        return ANY_SERVLET;
    }

    @Override
    public DispatcherType getDispatcherType() {
        return DispatcherType.REQUEST;
    }

    /** A user whose roles and claims are unknown. */
    private final class User extends AbstractAuthenticationToken implements OAuth2AuthenticatedPrincipal {

        private static final long serialVersionUID = 1;

        private final String name;

        User(String name) {
            super(List.of());
            this.name = name;
            setAuthenticated(true);
        }

        @Override
        public Collection<GrantedAuthority> getAuthorities() {
            miss("roles");
            return List.of();
        }

        @Override
        public @Nullable Object getCredentials() {
            return null;
        }

        @Override
        public String getName() {
            return name;
        }

        @Override
        public Object getPrincipal() {
            return this;
        }

        @Override
        public Map<String, Object> getAttributes() {
            miss("claims");
            return Map.of();
        }
    }
}
