package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.web.servlet.endpoint.MappedEndpoints.Endpoint;
import io.ratelimit.web.servlet.endpoint.MappedEndpoints.Exemption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.web.bind.annotation.RequestMethod;
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
     * Everything except the match itself is known at the start. Each endpoint has a rank for each method: its place among
     * all endpoints in the order in which MVC prefers them. The endpoint with the lowest rank that matches gets the
     * request. A tree of segments selects the few endpoints that may match, and PathPattern decides.
     *
     * A controller mapping that has the path but not the method answers 405 or OPTIONS itself, and later mappings are not
     * tried. Therefore the endpoints that don't admit the method have the last ranks of their mapping, and count as NONE.
     *
     * Headers, parameters, media types and versions are ignored, because comparing them may read the body. If mappings
     * differ only in these, the first one that admits the method is the endpoint.
     */

    /** The method of all requests whose method no endpoint names. */
    private static final String OTHER = "";

    private static final int NEVER = Integer.MAX_VALUE;

    private final PathIndex<Ranked> index = new PathIndex<>();
    private final Map<String, Integer> methods = new HashMap<>();
    private final int otherMethods;

    /** @param read the endpoints of the handler mappings, in the order of the {@code DispatcherServlet} */
    EndpointIndex(List<MappedEndpoints> read) {
        List<MappedEndpoints> mappings = withExemptionsRemoved(read);
        Set<String> methods = new TreeSet<>();
        for (RequestMethod method : RequestMethod.values()) {
            methods.add(method.name());
        }
        for (MappedEndpoints mapping : mappings) {
            for (Endpoint endpoint : mapping.endpoints()) {
                methods.addAll(endpoint.methods());
            }
        }
        methods.add(OTHER);
        for (String method : methods) {
            this.methods.put(method, this.methods.size());
        }
        otherMethods = this.methods.getOrDefault(OTHER, 0);
        List<List<Ranked>> ranked = new ArrayList<>();
        for (MappedEndpoints mapping : mappings) {
            ranked.add(ranked(mapping));
        }
        for (Map.Entry<String, Integer> method : this.methods.entrySet()) {
            rank(ranked, method.getKey(), method.getValue());
        }
        for (List<Ranked> endpoints : ranked) {
            for (Ranked one : endpoints) {
                index.add(one.endpoint().pattern(), one);
            }
        }
    }

    private List<Ranked> ranked(MappedEndpoints mapping) {
        List<Ranked> ranked = new ArrayList<>();
        for (Endpoint endpoint : mapping.endpoints()) {
            ranked.add(new Ranked(endpoint, mapping.controllers(), new int[methods.size()]));
        }
        return ranked;
    }

    private static void rank(List<List<Ranked>> mappings, String method, int number) {
        int rank = 0;
        for (List<Ranked> mapping : mappings) {
            List<Ranked> inOrder = new ArrayList<>(mapping);
            if (!inOrder.isEmpty() && inOrder.get(0).controller()) {
                inOrder.sort((one, other) -> one.endpoint().compareTo(other.endpoint(), method));
            }
            for (Ranked one : inOrder) {
                boolean isTried = one.controller() || one.endpoint().admits(method); // a controller for any method
                one.ranks()[number] = isTried ? rank++ : NEVER;
            }
        }
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

    /** Returns whether requests for an exempt endpoint are free. Tries its pattern's text as a path. */
    boolean exempts(Endpoint endpoint) {
        RequestPath path =
                RequestPath.of(PathContainer.parsePath(endpoint.pattern().getPatternString()));
        Set<String> methods = endpoint.methods().isEmpty() ? Set.of("GET", "POST") : endpoint.methods();
        return !endpoint.pattern().matches(path.parsed())
                || methods.stream().allMatch(method -> isExempt(method, path));
    }

    /**
     * Returns the endpoint, or {@link Endpoints#NONE}. A trailing slash is ignored where no endpoint has one.
     *
     * @param method the method as the client sent it
     * @param path the path that mappings match: without the context path and the servlet's prefix
     */
    String endpoint(String method, RequestPath path) {
        Ranked endpoint = find(method, path);
        return endpoint == null ? Endpoints.NONE : endpoint.key(method);
    }

    /** Returns the decoded path variables of the {@link #endpoint}. Empty if there is no endpoint. */
    Map<String, String> pathVariables(String method, RequestPath path) {
        Ranked endpoint = find(method, path);
        if (endpoint == null || endpoint.key(method).equals(Endpoints.NONE)) {
            return Map.of();
        }
        PathPattern pattern = endpoint.endpoint().pattern();
        PathPattern.PathMatchInfo match = pattern.matchAndExtract(path.parsed());
        match = match != null
                ? match
                : pattern.matchAndExtract(path.withoutTrailingSlash().parsed());
        return match == null ? Map.of() : match.getUriVariables();
    }

    private @Nullable Ranked find(String method, RequestPath path) {
        int number = number(method);
        Ranked endpoint = new Best(number, path).find(index);
        RequestPath shorter =
                endpoint == null || endpoint.key(method).equals(Endpoints.NONE) ? path.withoutTrailingSlash() : path;
        Ranked other = shorter == path ? null : new Best(number, shorter).find(index);
        return other == null ? endpoint : other;
    }

    private int number(String method) {
        return methods.getOrDefault(method, otherMethods);
    }

    /**
     * Returns whether all endpoints that a request may reach are exempt: headers and parameters may select any of those
     * with its method and path.
     */
    boolean isExempt(String method, RequestPath path) {
        int number = number(method);
        List<Ranked> candidates = new ArrayList<>();
        index.candidates(path, candidate -> {
            Ranked one = candidate.value();
            if (one.ranks()[number] != NEVER && one.exemption(method).handler() && candidate.matches(path)) {
                candidates.add(one);
            }
        });
        candidates.sort(Comparator.comparingInt(one -> one.ranks()[number]));
        return isExempt(candidates, method);
    }

    /** Checks endpoints up to the first that certainly gets the request, and those that are as specific. */
    private static boolean isExempt(List<Ranked> inOrder, String method) {
        Endpoint certain = null;
        for (Ranked one : inOrder) {
            if (certain != null && !one.endpoint().isAsSpecificAs(certain)) {
                return true;
            }
            Exemption exemption = one.exemption(method);
            if (!exemption.exempt()) {
                return false;
            }
            certain = certain == null && exemption.certain() ? one.endpoint() : certain;
        }
        return !inOrder.isEmpty();
    }

    /** @param ranks the rank for each method, by the method's number; the lowest rank comes first */
    private record Ranked(Endpoint endpoint, boolean controller, int[] ranks) {

        String key(String method) {
            return isHandler(method) ? endpoint.key() : Endpoints.NONE;
        }

        Exemption exemption(String method) {
            return isHandler(method) ? endpoint.exemption() : Exemption.NO_HANDLER;
        }

        private boolean isHandler(String method) {
            return !controller || endpoint.isAdmittedByController(method);
        }
    }

    /** A search for the endpoint with the lowest rank that matches a path. */
    private static final class Best implements Consumer<PathIndex.Entry<Ranked>> {

        private final int method;
        private final RequestPath path;
        private int rank = NEVER;
        private @Nullable Ranked found;

        Best(int method, RequestPath path) {
            this.method = method;
            this.path = path;
        }

        @Nullable
        Ranked find(PathIndex<Ranked> index) {
            index.candidates(path, this);
            return found;
        }

        @Override
        public void accept(PathIndex.Entry<Ranked> candidate) {
            int candidateRank = candidate.value().ranks()[method];
            if (candidateRank < rank && candidate.matches(path)) {
                rank = candidateRank;
                found = candidate.value();
            }
        }
    }
}
