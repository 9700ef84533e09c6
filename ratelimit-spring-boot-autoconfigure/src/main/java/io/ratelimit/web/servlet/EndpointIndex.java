package io.ratelimit.web.servlet;

import io.ratelimit.Keys;
import io.ratelimit.web.servlet.MappedEndpoints.Endpoint;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.util.pattern.PathPattern;

/**
 * Tells which endpoint a request will reach, by its method and path alone. An endpoint is a pattern of a handler
 * mapping together with the methods of that mapping, as in {@code GET,POST /items/{id}}. Immutable.
 */
final class EndpointIndex {

    /*
     * Spring MVC decides by trying every pattern, sorting what matched and looking at headers and parameters. Asking it
     * before the request gets there costs 4 to 20 microseconds. A map from path to endpoint would be quick, but finds no
     * pattern, and aliases of a path (/%6cogin, /login;a=b) walk past it.
     *
     * But all except the match itself is known at the start. For each method there is one list of all patterns, in the
     * order in which MVC would prefer them: the first that matches is the endpoint. To try few of them, the list is
     * spread over a tree of literal segments. Each node holds, still in order, the patterns whose literal beginning leads
     * to it or to a node above it; as none that begins otherwise can match, the node to which a path's decoded segments
     * lead has all it needs: two for /items/5, if /items and /items/{id} are all that begins so. The tree only narrows
     * down (it ignores case, for some mappings do), PathPattern decides.
     *
     * A controller mapping that knows the path but not the method answers 405 or OPTIONS itself, and nobody is asked
     * after it. So what the method isn't admitted to follows at the end of that mapping's part of the list, as NONE.
     *
     * Headers, parameters, media types and versions are not looked at, for that may read the body: where only they tell
     * mappings apart, the first one that admits the method is taken.
     */

    /** What requests share that reach no endpoint: static files, unknown paths, a method that a path doesn't have. */
    static final String NONE = "none";

    private final Map<String, Node> byMethod = new HashMap<>();
    private final Node otherMethods;
    private final Set<String> patterns = new TreeSet<>();
    private final Map<String, String> patternsByKey = new TreeMap<>();

    private final Set<String> exemptInVain = new TreeSet<>();
    private final boolean hasExempt;

    private EndpointIndex(List<MappedEndpoints> read) {
        List<MappedEndpoints> mappings = withoutBlind(read);
        Set<String> methods =
                Arrays.stream(RequestMethod.values()).map(Enum::name).collect(Collectors.toCollection(TreeSet::new));
        for (MappedEndpoints mapping : mappings) {
            for (Endpoint endpoint : mapping.endpoints()) {
                methods.addAll(endpoint.methods());
                if (!endpoint.key().equals(NONE)) {
                    patterns.add(endpoint.pattern().getPatternString());
                    patternsByKey.put(endpoint.key(), endpoint.pattern().getPatternString());
                }
            }
        }
        methods.forEach(method -> byMethod.put(method, Node.of(mappings, method)));
        otherMethods = Node.of(mappings, "");
        List<Endpoint> exempt = exempt(read);
        exempt.stream().filter(endpoint -> !isHonoured(endpoint)).forEach(endpoint -> exemptInVain.add(endpoint.key()));
        hasExempt = !exempt.isEmpty();
    }

    /** Behind what isn't known no endpoint is exempt. */
    private static List<MappedEndpoints> withoutBlind(List<MappedEndpoints> read) {
        boolean complete = true;
        List<MappedEndpoints> mappings = new ArrayList<>();
        for (MappedEndpoints mapping : read) {
            complete &= mapping.complete();
            mappings.add(complete ? mapping : mapping.blinded());
        }
        return mappings;
    }

    private static List<Endpoint> exempt(List<MappedEndpoints> read) {
        return read.stream()
                .flatMap(mapping -> mapping.endpoints().stream())
                .filter(endpoint -> endpoint.exemption().exempt())
                .toList();
    }

    /** Whether requests for an exempt endpoint are free, tried with the text of its pattern as a path. */
    private boolean isHonoured(Endpoint endpoint) {
        PathContainer path = PathContainer.parsePath(endpoint.pattern().getPatternString());
        Set<String> methods = endpoint.methods().isEmpty() ? Set.of("GET", "POST") : endpoint.methods();
        return !endpoint.pattern().matches(path) || methods.stream().allMatch(method -> isExempt(method, path));
    }

    /**
     * Reads the handler mappings once; what is mapped later isn't seen.
     * @param mappings in the order of the {@code DispatcherServlet}; one that is unknown or fails is skipped
     */
    static EndpointIndex of(List<? extends HandlerMapping> mappings) {
        return new EndpointIndex(mappings.stream().map(MappedEndpoints::of).toList());
    }

    /**
     * Returns the endpoint, or {@link #NONE}. A trailing slash is ignored where nothing is mapped with it.
     * @param method whatever the client sent
     * @param path what the mappings match: without the context path and the servlet's prefix
     */
    String endpoint(String method, PathContainer path) {
        Node tree = byMethod.getOrDefault(method, otherMethods);
        String key = tree.find(path);
        if (!key.equals(NONE)) {
            return key;
        }
        PathContainer shorter = withoutTrailingSlash(path);
        return shorter == path ? NONE : tree.find(shorter);
    }

    /** The variables in the pattern of the {@link #endpoint}, decoded; none where there is no endpoint. */
    Map<String, String> pathVariables(String method, PathContainer path) {
        Node tree = byMethod.getOrDefault(method, otherMethods);
        Map<String, String> variables = tree.variables(path);
        PathContainer shorter = withoutTrailingSlash(path);
        return variables == null && shorter != path ? orNone(tree.variables(shorter)) : orNone(variables);
    }

    private static Map<String, String> orNone(@Nullable Map<String, String> variables) {
        return variables == null ? Map.of() : variables;
    }

    private static PathContainer withoutTrailingSlash(PathContainer path) {
        int last = path.elements().size() - 1;
        return last > 0 && path.elements().get(last) instanceof PathContainer.Separator ? path.subPath(0, last) : path;
    }

    /**
     * Whether every endpoint is exempt that a request may reach in the end, when headers and parameters have chosen among
     * those that its method and path lead to.
     */
    boolean isExempt(String method, PathContainer path) {
        return byMethod.getOrDefault(method, otherMethods).isExempt(path);
    }

    boolean hasExempt() {
        return hasExempt;
    }

    /** The endpoints that are exempt and yet not free, as another one may get their requests. */
    Collection<String> exemptInVain() {
        return List.copyOf(exemptInVain);
    }

    /** All patterns that lead to an endpoint, sorted. */
    Collection<String> patterns() {
        return List.copyOf(patterns);
    }

    /** All endpoints but {@link #NONE}, sorted. */
    Collection<String> keys() {
        return List.copyOf(patternsByKey.keySet());
    }

    /** The pattern of an endpoint; null for {@link #NONE}. */
    @Nullable
    String pattern(String key) {
        return patternsByKey.get(key);
    }

    private static final class Node {

        private final Map<String, Node> children = new HashMap<>();
        private final List<Endpoint> endpoints = new ArrayList<>();

        /** First all nodes, then what they hold: an endpoint goes to all nodes below its own. */
        static Node of(List<MappedEndpoints> mappings, String method) {
            List<Endpoint> inOrder = mappings.stream()
                    .flatMap(mapping -> mapping.inOrder(method))
                    .toList();
            Node root = new Node();
            inOrder.forEach(endpoint -> root.at(endpoint.literalBeginning()));
            inOrder.forEach(endpoint -> root.at(endpoint.literalBeginning()).add(endpoint));
            return root;
        }

        private Node at(List<String> segments) {
            Node node = this;
            for (String segment : segments) {
                node = node.children.computeIfAbsent(Keys.part(segment, true), absent -> new Node());
            }
            return node;
        }

        private void add(Endpoint endpoint) {
            endpoints.add(endpoint);
            children.values().forEach(child -> child.add(endpoint));
        }

        String find(PathContainer path) {
            Endpoint endpoint = match(path);
            return endpoint == null ? NONE : endpoint.key();
        }

        /** Null where the path reaches no endpoint. */
        @Nullable
        Map<String, String> variables(PathContainer path) {
            Endpoint endpoint = match(path);
            PathPattern.PathMatchInfo match = endpoint == null || endpoint.key().equals(NONE)
                    ? null
                    : endpoint.pattern().matchAndExtract(path);
            return match == null ? null : match.getUriVariables();
        }

        private @Nullable Endpoint match(PathContainer path) {
            for (Endpoint endpoint : nearest(path.elements()).endpoints) {
                if (endpoint.pattern().matches(path)) {
                    return endpoint;
                }
            }
            return null;
        }

        /** Up to the first that is certain to take the request, and those that are as specific. */
        boolean isExempt(PathContainer path) {
            Endpoint certain = null;
            boolean reached = false;
            for (Endpoint endpoint : nearest(path.elements()).endpoints) {
                if (endpoint.exemption().handler() && endpoint.pattern().matches(path)) {
                    if (certain != null && !endpoint.isAsSpecificAs(certain)) {
                        return true;
                    }
                    if (!endpoint.exemption().exempt()) {
                        return false;
                    }
                    reached = true;
                    certain = certain == null && endpoint.exemption().certain() ? endpoint : certain;
                }
            }
            return reached;
        }

        private Node nearest(List<PathContainer.Element> path) {
            Node node = this;
            for (int i = 0, size = path.size(); i < size; i++) {
                if (path.get(i) instanceof PathContainer.PathSegment segment) {
                    Node child = node.children.get(Keys.part(segment.valueToMatch(), true));
                    if (child == null) {
                        return node;
                    }
                    node = child;
                }
            }
            return node;
        }
    }
}
