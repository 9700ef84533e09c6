package io.ratelimit.web.servlet.endpoint;

import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Element;
import org.springframework.http.server.PathContainer.PathSegment;
import org.springframework.web.servlet.HandlerMapping;

/**
 * The endpoints of the application's {@code DispatcherServlet}, at any servlet path. A request to another servlet reaches
 * none. Immutable.
 */
public final class Endpoints {

    /** The endpoint of requests that reach none: static files, unknown paths, and methods that a path doesn't have. */
    public static final String NONE = "none";

    private final String servletName;
    private final PathContainer servletPath;
    private final EndpointIndex index;

    /**
     * @param servletName the name of the {@code DispatcherServlet}
     * @param servletPath the prefix of all its paths, such as {@code /app}; empty for none
     * @param mappings the handler mappings in the {@code DispatcherServlet}'s order
     */
    public Endpoints(String servletName, String servletPath, List<? extends HandlerMapping> mappings) {
        this.servletName = servletName;
        this.servletPath = PathContainer.parsePath(servletPath);
        this.index = EndpointIndex.of(mappings);
    }

    /** Returns the endpoint of a request with this path below the context path, or {@link #NONE}. */
    public String endpoint(HttpServletRequest request, PathContainer path) {
        return targetsDispatcher(request) && isBelowServletPath(path)
                ? index.endpoint(
                        request.getMethod(), path.subPath(servletPath.elements().size()))
                : NONE;
    }

    /** Returns whether a request can reach only exempt handlers, by each of the paths that it may mean. */
    public boolean isExempt(HttpServletRequest request, List<PathContainer> paths) {
        if (paths.isEmpty() || !targetsDispatcher(request)) {
            return false;
        }
        for (PathContainer path : paths) {
            if (!isBelowServletPath(path)
                    || !index.isExempt(
                            request.getMethod(),
                            path.subPath(servletPath.elements().size()))) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether requests to an endpoint are exempt, by its pattern below the servlet's path. */
    public boolean isExempt(String method, String pattern) {
        return index.isExempt(method, PathContainer.parsePath(pattern));
    }

    /** Returns a pattern below the context path, as a path, by the pattern below the servlet's path. */
    public PathContainer path(String pattern) {
        return PathContainer.parsePath(servletPath.value() + pattern);
    }

    /** Returns the exempt endpoints whose exemption has no effect, because another endpoint may get their requests. */
    public Collection<String> ineffectiveExemptions() {
        return index.ineffectiveExemptions();
    }

    /** Returns whether any endpoint is exempt. */
    public boolean hasExempt() {
        return index.hasExempt();
    }

    /** Returns the path variables of a request with this path below the context path. Empty if it reaches no endpoint. */
    public Map<String, String> pathVariables(HttpServletRequest request, PathContainer path) {
        return targetsDispatcher(request) && isBelowServletPath(path)
                ? index.pathVariables(
                        request.getMethod(), path.subPath(servletPath.elements().size()))
                : Map.of();
    }

    /** Returns the patterns of all endpoints, below the context path. */
    public Collection<String> patterns() {
        List<String> patterns = new ArrayList<>();
        for (String pattern : index.patterns()) {
            patterns.add(servletPath.value() + pattern);
        }
        return patterns;
    }

    /** Returns Spring MVC's pattern of an endpoint, below the servlet's path; null if there is no such endpoint. */
    public @Nullable String pattern(String endpoint) {
        return index.pattern(endpoint);
    }

    /** Returns the names of all endpoints as they occur in keys, without {@link #NONE}. */
    public Collection<String> names() {
        return index.keys();
    }

    /** Returns whether the request's servlet is the {@code DispatcherServlet}. */
    public boolean targetsDispatcher(HttpServletRequest request) {
        String target = request.getHttpServletMapping().getServletName();
        return target.isEmpty() || target.equals(servletName);
    }

    private boolean isBelowServletPath(PathContainer path) {
        List<Element> elements = path.elements();
        List<Element> prefix = servletPath.elements();
        if (elements.size() < prefix.size()) {
            return false;
        }
        for (int i = 0; i < prefix.size(); i++) {
            if (!text(elements.get(i)).equals(text(prefix.get(i)))) {
                return false;
            }
        }
        return true;
    }

    private static String text(Element element) {
        return element instanceof PathSegment segment ? segment.valueToMatch() : element.value();
    }
}
