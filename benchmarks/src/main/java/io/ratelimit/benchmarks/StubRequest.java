package io.ratelimit.benchmarks;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServletMapping;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.MappingMatch;
import java.lang.reflect.Proxy;
import java.security.Principal;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A request that costs next to nothing, so that what is measured is the filter. What the filter doesn't ask, throws. */
final class StubRequest extends HttpServletRequestWrapper {

    private static final Principal USER = () -> "alice";
    private static final HttpServletMapping MAPPING = new HttpServletMapping() {
        @Override
        public String getMatchValue() {
            return "";
        }

        @Override
        public String getPattern() {
            return "/";
        }

        @Override
        public String getServletName() {
            return FilterApplication.SERVLET;
        }

        @Override
        public MappingMatch getMappingMatch() {
            return MappingMatch.DEFAULT;
        }
    };

    private final Map<String, Object> attributes = new HashMap<>();
    private final String uri;

    StubRequest(String uri) {
        super((HttpServletRequest) Proxy.newProxyInstance(
                StubRequest.class.getClassLoader(),
                new Class<?>[] {HttpServletRequest.class},
                (proxy, method, args) -> {
                    throw new UnsupportedOperationException(method.toString());
                }));
        this.uri = uri;
    }

    /** Makes it the next request, as containers do. */
    void recycle() {
        attributes.clear();
    }

    @Override
    public @Nullable Object getAttribute(String name) {
        return attributes.get(name);
    }

    @Override
    public void setAttribute(String name, Object value) {
        attributes.put(name, value);
    }

    @Override
    public void removeAttribute(String name) {
        attributes.remove(name);
    }

    @Override
    public String getMethod() {
        return "GET";
    }

    @Override
    public String getRequestURI() {
        return uri;
    }

    @Override
    public String getContextPath() {
        return "";
    }

    @Override
    public String getRemoteAddr() {
        return "192.0.2.7";
    }

    @Override
    public Principal getUserPrincipal() {
        return USER;
    }

    @Override
    public @Nullable String getHeader(String name) {
        return null;
    }

    @Override
    public HttpServletMapping getHttpServletMapping() {
        return MAPPING;
    }

    @Override
    public DispatcherType getDispatcherType() {
        return DispatcherType.REQUEST;
    }
}
