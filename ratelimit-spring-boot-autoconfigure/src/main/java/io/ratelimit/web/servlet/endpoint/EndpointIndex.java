package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.Keys;
import io.ratelimit.web.servlet.endpoint.MappedEndpoints.Endpoint;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.util.pattern.PathPattern;

/**
 * An index of endpoints by method and path. An endpoint is a pattern of a handler mapping together with the methods of that
 * mapping, as in {@code GET,POST /items/{id}}. Immutable.
 */
final class EndpointIndex {

    /*
     * Which endpoint will a request reach? Spring MVC tries every pattern, sorts the matches, and compares headers and
     * parameters. Running its look-up a second time in the filter costs 4 to 20 microseconds. A map from path to endpoint
     * would be fast, but it has no patterns, and misses aliases of a path (/%6cogin, /login;a=b).
     *
     * Everything except the match itself is known at the start. For each method there is one list of all patterns, in the
     * order in which MVC prefers them, and the first match is the endpoint. To try only few patterns, the list is spread
     * over a tree of literal segments. Each node holds, in the same order, the patterns whose literal beginning leads to
     * this node or to a node above it. No other pattern can match, so the node to which a path's decoded segments lead is
     * enough. For /items/5 it holds two patterns, if only /items and /items/{id} begin like this. The tree is only a
     * filter (it ignores case, because some mappings do); PathPattern decides.
     *
     * A controller mapping that has the path but not the method answers 405 or OPTIONS itself, and later mappings are not
     * tried. Therefore the endpoints that don't admit the method follow at the end of their mapping's part, as NONE.
     *
     * Headers, parameters, media types and versions are ignored, because comparing them may read the body. If mappings
     * differ only in these, the first one that admits the method is the endpoint.
     */

    private final Map<String, Node> byMethod = new HashMap<>();
    private final Node otherMethods;
    private final Set<String> patterns = new TreeSet<>();
    private final Map<String, String> patternsByKey = new TreeMap<>();
    private final Set<String> ineffectiveExemptions = new TreeSet<>();
    private final boolean hasExempt;

    private EndpointIndex(List<MappedEndpoints> read) {
        List<MappedEndpoints> mappings = withExemptionsRemoved(read);
        Set<String> methods = new TreeSet<>();
        for (RequestMethod method : RequestMethod.values()) {
            methods.add(method.name());
        }
        for (MappedEndpoints mapping : mappings) {
            for (Endpoint endpoint : mapping.endpoints()) {
                methods.addAll(endpoint.methods());
                if (!endpoint.key().equals(Endpoints.NONE)) {
                    patterns.add(endpoint.pattern().getPatternString());
                    patternsByKey.put(endpoint.key(), endpoint.pattern().getPatternString());
                }
            }
        }
        for (String method : methods) {
            byMethod.put(method, Node.of(mappings, method));
        }
        otherMethods = Node.of(mappings, "");
        List<Endpoint> exempt = exempt(read);
        for (Endpoint endpoint : exempt) {
            if (!isEffective(endpoint)) {
                ineffectiveExemptions.add(endpoint.key());
            }
        }
        hasExempt = !exempt.isEmpty();
    }

    /** Removes the exemptions behind an incompletely known mapping, since its unknown endpoints may get the requests. */
    private static List<MappedEndpoints> withExemptionsRemoved(List<MappedEndpoints> read) {
        boolean complete = true;
        List<MappedEndpoints> mappings = new ArrayList<>();
        for (MappedEndpoints mapping : read) {
            complete &= mapping.complete();
            mappings.add(complete ? mapping : mapping.withoutExemptions());
        }
        return mappings;
    }

    private static List<Endpoint> exempt(List<MappedEndpoints> read) {
        List<Endpoint> exempt = new ArrayList<>();
        for (MappedEndpoints mapping : read) {
            for (Endpoint endpoint : mapping.endpoints()) {
                if (endpoint.exemption().exempt()) {
                    exempt.add(endpoint);
                }
            }
        }
        return exempt;
    }

    /** Returns whether requests for an exempt endpoint are free. Tries its pattern's text as a path. */
    private boolean isEffective(Endpoint endpoint) {
        PathContainer path = PathContainer.parsePath(endpoint.pattern().getPatternString());
        Set<String> methods = endpoint.methods().isEmpty() ? Set.of("GET", "POST") : endpoint.methods();
        return !endpoint.pattern().matches(path) || methods.stream().allMatch(method -> isExempt(method, path));
    }

    /**
     * Reads the handler mappings once. Later changes of a mapping have no effect.
     *
     * @param mappings in the order of the {@code DispatcherServlet}; unknown and failing mappings are skipped
     */
    static EndpointIndex of(List<? extends HandlerMapping> mappings) {
        List<MappedEndpoints> read = new ArrayList<>();
        for (HandlerMapping mapping : mappings) {
            read.add(MappedEndpoints.of(mapping));
        }
        return new EndpointIndex(read);
    }

    /**
     * Returns the endpoint, or {@link Endpoints#NONE}. A trailing slash is ignored where no endpoint has one.
     *
     * @param method the method as the client sent it
     * @param path the path that mappings match: without the context path and the servlet's prefix
     */
    String endpoint(String method, PathContainer path) {
        Node tree = byMethod.getOrDefault(method, otherMethods);
        String key = tree.find(path);
        if (!key.equals(Endpoints.NONE)) {
            return key;
        }
        PathContainer shorter = withoutTrailingSlash(path);
        return shorter == path ? Endpoints.NONE : tree.find(shorter);
    }

    /** Returns the decoded path variables of the {@link #endpoint}. Empty if there is no endpoint. */
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
     * Returns whether all endpoints that a request may reach are exempt: headers and parameters may select any of those
     * with its method and path.
     */
    boolean isExempt(String method, PathContainer path) {
        return byMethod.getOrDefault(method, otherMethods).isExempt(path);
    }

    boolean hasExempt() {
        return hasExempt;
    }

    /** Returns the exempt endpoints whose exemption has no effect, because another endpoint may get their requests. */
    Collection<String> ineffectiveExemptions() {
        return List.copyOf(ineffectiveExemptions);
    }

    /** Returns the sorted patterns of all endpoints. */
    Collection<String> patterns() {
        return List.copyOf(patterns);
    }

    /** Returns the sorted names of all endpoints except {@link Endpoints#NONE}. */
    Collection<String> keys() {
        return List.copyOf(patternsByKey.keySet());
    }

    /** Returns the pattern of an endpoint, or null for {@link Endpoints#NONE}. */
    @Nullable
    String pattern(String key) {
        return patternsByKey.get(key);
    }

    private static final class Node {

        private final Map<String, Node> children = new HashMap<>();
        private final List<Endpoint> endpoints = new ArrayList<>();

        /** Creates all nodes before adding endpoints, because an endpoint is also added to all nodes below its own. */
        static Node of(List<MappedEndpoints> mappings, String method) {
            List<Endpoint> inOrder = new ArrayList<>();
            for (MappedEndpoints mapping : mappings) {
                inOrder.addAll(mapping.inOrder(method));
            }
            Node root = new Node();
            for (Endpoint endpoint : inOrder) {
                root.at(endpoint.literalBeginning());
            }
            for (Endpoint endpoint : inOrder) {
                root.at(endpoint.literalBeginning()).add(endpoint);
            }
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
            for (Node child : children.values()) {
                child.add(endpoint);
            }
        }

        String find(PathContainer path) {
            Endpoint endpoint = match(path);
            return endpoint == null ? Endpoints.NONE : endpoint.key();
        }

        /** Returns null if the path reaches no endpoint. */
        @Nullable
        Map<String, String> variables(PathContainer path) {
            Endpoint endpoint = match(path);
            PathPattern.PathMatchInfo match = endpoint == null || endpoint.key().equals(Endpoints.NONE)
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

        /** Checks endpoints up to the first that certainly gets the request, and those that are as specific. */
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
