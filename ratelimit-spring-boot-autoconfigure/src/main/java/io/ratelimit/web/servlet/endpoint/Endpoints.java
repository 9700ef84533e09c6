package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.Keys;
import io.ratelimit.web.servlet.endpoint.MappedEndpoints.Endpoint;
import jakarta.servlet.http.HttpServletRequest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.handler.AbstractHandlerMapping;
import org.springframework.web.util.pattern.PathPatternParser;

/**
 * The endpoints of the application's {@code DispatcherServlet}, at any servlet path. A request to another servlet reaches
 * none. Immutable.
 */
public final class Endpoints {

    /** The endpoint of requests that reach none: static files, unknown paths, and methods that a path doesn't have. */
    public static final String NONE = "none";

    private final String servletName;
    private final PathContainer servletPath;
    private final List<? extends HandlerMapping> mappings;
    private final EndpointIndex index;
    private final @Nullable AbstractHandlerMapping ant;
    private final Set<String> patterns = new TreeSet<>();
    private final Map<String, Name> names = new HashMap<>();
    private final Set<String> ineffectiveExemptions = new TreeSet<>();
    private final boolean hasExempt;
    private final boolean complete;

    /**
     * Reads the handler mappings once. Later changes of a mapping have no effect; unknown and failing mappings are skipped.
     *
     * @param servletName the name of the {@code DispatcherServlet}
     * @param servletPath the prefix of all its paths, such as {@code /app}; empty for none
     * @param mappings the handler mappings in the {@code DispatcherServlet}'s order
     */
    public Endpoints(String servletName, String servletPath, List<? extends HandlerMapping> mappings) {
        this.servletName = servletName;
        this.servletPath = PathContainer.parsePath(servletPath);
        this.mappings = List.copyOf(mappings);
        this.ant = MappedEndpoints.withAntPathMatcher(mappings);
        List<MappedEndpoints> read = new ArrayList<>();
        for (HandlerMapping mapping : mappings) {
            read.add(MappedEndpoints.of(mapping));
        }
        this.index = new EndpointIndex(read);
        boolean allRead = !servletName.isEmpty();
        boolean anyExempt = false;
        for (MappedEndpoints mapping : read) {
            allRead &= mapping.complete();
            for (Endpoint endpoint : mapping.endpoints()) {
                addName(endpoint);
                anyExempt |= endpoint.exemption().exempt();
                if (endpoint.exemption().exempt() && !index.exempts(endpoint)) {
                    ineffectiveExemptions.add(endpoint.key());
                }
            }
        }
        this.hasExempt = anyExempt;
        this.complete = allRead;
    }

    private void addName(Endpoint endpoint) {
        String pattern = endpoint.pattern().getPatternString();
        if (!endpoint.key().equals(NONE)) {
            patterns.add(servletPath.value() + pattern);
            names.put(endpoint.key(), new Name(pattern, Keys.part(endpoint.key(), true)));
        }
    }

    /** The texts of an endpoint that has a key: the pattern, and the key without differences of case. */
    private record Name(String pattern, String folded) {}

    /** Returns the handler mappings in the {@code DispatcherServlet}'s order. */
    public List<? extends HandlerMapping> mappings() {
        return mappings;
    }

    /** Returns the parser of the application's patterns: that of Spring MVC, or one that ignores case as a mapping does. */
    public PathPatternParser parser(PathPatternParser mvc) {
        return ant == null || !mvc.isCaseSensitive() ? mvc : MappedEndpoints.parser(ant);
    }

    /** Returns whether a mapping ignores the case of paths. */
    public boolean ignoresCase() {
        for (HandlerMapping mapping : mappings) {
            if (mapping instanceof AbstractHandlerMapping known
                    && !MappedEndpoints.parser(known).isCaseSensitive()) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns the path of a request as {@code AntPathMatcher} gets it: decoded, without parameters and empty segments. Null if
     * no mapping matches by it.
     */
    @SuppressWarnings("removal") // not called where Spring MVC has no AntPathMatcher
    public @Nullable String antPath(HttpServletRequest request) {
        return ant == null ? null : servletPath.value() + ant.getUrlPathHelper().getLookupPathForRequest(request);
    }

    /** Returns the endpoint of a request with this path below the context path, or {@link #NONE}. */
    public String endpoint(HttpServletRequest request, RequestPath path) {
        RequestPath below = belowServletPath(request, path);
        return below == null ? NONE : index.endpoint(request.getMethod(), below);
    }

    /** Returns whether a request can reach only exempt handlers, by each of the paths that it may mean. */
    public boolean isExempt(HttpServletRequest request, List<RequestPath> paths) {
        for (RequestPath path : paths) {
            RequestPath below = belowServletPath(request, path);
            if (below == null || !index.isExempt(request.getMethod(), below)) {
                return false;
            }
        }
        return !paths.isEmpty();
    }

    /** Returns whether requests to an endpoint are exempt, by its pattern below the servlet's path. */
    public boolean isExempt(String method, String pattern) {
        return index.isExempt(method, RequestPath.of(PathContainer.parsePath(pattern)));
    }

    /** Returns a pattern below the context path, as a path, by the pattern below the servlet's path. */
    public PathContainer path(String pattern) {
        return PathContainer.parsePath(servletPath.value() + pattern);
    }

    /** Returns the exempt endpoints whose exemption has no effect, because another endpoint may get their requests. */
    public Collection<String> ineffectiveExemptions() {
        return List.copyOf(ineffectiveExemptions);
    }

    /** Returns whether any endpoint is exempt. */
    public boolean hasExempt() {
        return hasExempt;
    }

    /** Returns the path variables of a request with this path below the context path. Empty if it reaches no endpoint. */
    public Map<String, String> pathVariables(HttpServletRequest request, RequestPath path) {
        RequestPath below = belowServletPath(request, path);
        return below == null ? Map.of() : index.pathVariables(request.getMethod(), below);
    }

    /** Returns the path that handler mappings match; null if the request doesn't reach the {@code DispatcherServlet}. */
    private @Nullable RequestPath belowServletPath(HttpServletRequest request, RequestPath path) {
        return targetsDispatcher(request) ? path.below(servletPath) : null;
    }

    /** Returns the patterns of all endpoints, below the context path. */
    public Collection<String> patterns() {
        return List.copyOf(patterns);
    }

    /** Returns Spring MVC's pattern of an endpoint, below the servlet's path; null if there is no such endpoint. */
    public @Nullable String pattern(String endpoint) {
        Name name = names.get(endpoint);
        return name == null ? null : name.pattern;
    }

    /** Returns the name of an endpoint as a part of keys that ignore case. */
    public String folded(String endpoint) {
        Name name = names.get(endpoint);
        return name == null ? Keys.part(endpoint, true) : name.folded;
    }

    /** Returns the names of all endpoints as they occur in keys, without {@link #NONE}. */
    public Collection<String> names() {
        return new TreeSet<>(names.keySet());
    }

    /** Returns whether these are all endpoints of the {@code DispatcherServlet}. */
    public boolean isComplete() {
        return complete;
    }

    /** Returns whether the {@code DispatcherServlet} has a name. */
    public boolean isServlet(String name) {
        return name.equals(servletName);
    }

    public boolean targetsDispatcher(HttpServletRequest request) {
        String target = request.getHttpServletMapping().getServletName();
        return target.isEmpty() || target.equals(servletName);
    }
}
