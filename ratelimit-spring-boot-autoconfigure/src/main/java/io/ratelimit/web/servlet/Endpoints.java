package io.ratelimit.web.servlet;

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

/** The endpoints of the application's {@code DispatcherServlet}, whatever its path. Requests to other servlets reach none. */
public final class Endpoints {

    private final String servletName;
    private final PathContainer servletPath;
    private final EndpointIndex index;

    /**
     * @param servletName of the {@code DispatcherServlet}
     * @param servletPath the prefix of all its paths, such as {@code /app}; empty for none
     * @param mappings in the {@code DispatcherServlet}'s order
     */
    public Endpoints(String servletName, String servletPath, List<? extends HandlerMapping> mappings) {
        this.servletName = servletName;
        this.servletPath = PathContainer.parsePath(servletPath);
        this.index = EndpointIndex.of(mappings);
    }

    /** The endpoint of a request, by its path below the context path. */
    String endpoint(HttpServletRequest request, PathContainer path) {
        return isMine(request) && isBelowServletPath(path)
                ? index.endpoint(
                        request.getMethod(), path.subPath(servletPath.elements().size()))
                : EndpointIndex.NONE;
    }

    /** Whether a request will reach handlers that are exempt and no others, however one of its paths is read. */
    boolean isExempt(HttpServletRequest request, List<PathContainer> paths) {
        if (paths.isEmpty() || !isMine(request)) {
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

    /** The endpoints that are exempt and yet not free, as another one may get their requests. */
    public Collection<String> exemptInVain() {
        return index.exemptInVain();
    }

    /** Whether there may be requests that are free. */
    boolean hasExempt() {
        return index.hasExempt();
    }

    /** The variables in the pattern of a request's endpoint, by its path below the context path; none where it has none. */
    Map<String, String> pathVariables(HttpServletRequest request, PathContainer path) {
        return isMine(request) && isBelowServletPath(path)
                ? index.pathVariables(
                        request.getMethod(), path.subPath(servletPath.elements().size()))
                : Map.of();
    }

    /** The patterns of all endpoints, below the context path. */
    public Collection<String> patterns() {
        List<String> patterns = new ArrayList<>();
        for (String pattern : index.patterns()) {
            patterns.add(servletPath.value() + pattern);
        }
        return patterns;
    }

    /** The pattern by which Spring MVC knows an endpoint of this name, below the servlet's path; null if there is none. */
    @Nullable
    String pattern(String endpoint) {
        return index.pattern(endpoint);
    }

    /** The names of all endpoints, as keys have them; not what requests share that reach none. */
    public Collection<String> names() {
        return index.keys();
    }

    /** Whether the request goes to the {@code DispatcherServlet}. */
    boolean isMine(HttpServletRequest request) {
        String reached = request.getHttpServletMapping().getServletName();
        return reached.isEmpty() || reached.equals(servletName);
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
