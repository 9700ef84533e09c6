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
    private @Nullable String endpoint;
    private @Nullable String ip;

    ServletRequestFacts(HttpServletRequest request, Endpoints endpoints) {
        this.request = request;
        this.endpoints = endpoints;
        this.path = parse(request);
    }

    /** The path below the context path; null where the request line has none that can be read. */
    private static @Nullable PathContainer parse(HttpServletRequest request) {
        try {
            RequestPath path = RequestPath.parse(request.getRequestURI(), request.getContextPath());
            return path.subPath(path.contextPath().elements().size());
        } catch (IllegalArgumentException unreadable) {
            return null;
        }
    }

    HttpServletRequest request() {
        return request;
    }

    /** The path below the context path, with the servlet's own; null where there is none that can be read. */
    @Nullable PathContainer path() {
        return path;
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
