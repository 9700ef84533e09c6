package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.web.servlet.endpoint.MappedEndpoints.Endpoint;
import io.ratelimit.web.servlet.endpoint.RouterFunctionEndpoints.Condition;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BinaryOperator;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.io.Resource;
import org.springframework.http.HttpMethod;
import org.springframework.web.servlet.function.HandlerFunction;
import org.springframework.web.servlet.function.RequestPredicate;
import org.springframework.web.servlet.function.RequestPredicates;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerRequest;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.util.pattern.PathPattern;

/**
 * A reader of the endpoints of router functions, in the order in which Spring MVC tries them.
 *
 * <p>It evaluates only the paths and methods of predicates, and assumes that other predicates hold. A route without a path
 * covers all paths below those that it is nested in. If these are all paths, because of a predicate that isn't evaluated,
 * the route is left out.
 */
final class RouterFunctionEndpoints implements RouterFunctions.Visitor {

    private final RouterFunctionMapping mapping;
    private final Deque<List<Condition>> nested = new ArrayDeque<>(List.of(List.of(new Condition(null, null, true))));
    private final List<Endpoint> endpoints = new ArrayList<>();
    private boolean complete = true;

    private RouterFunctionEndpoints(RouterFunctionMapping mapping) {
        this.mapping = mapping;
    }

    static MappedEndpoints of(RouterFunctionMapping mapping) {
        RouterFunctionEndpoints found = new RouterFunctionEndpoints(mapping);
        RouterFunction<?> function = mapping.getRouterFunction();
        if (function != null) {
            function.accept(found);
        }
        return new MappedEndpoints(found.endpoints, false, found.complete);
    }

    @Override
    public void startNested(RequestPredicate predicate) {
        nested.push(Condition.pairs(nested.element(), PredicateReader.read(predicate), Condition::around));
    }

    @Override
    public void endNested(RequestPredicate predicate) {
        nested.pop();
    }

    @Override
    public void route(RequestPredicate predicate, HandlerFunction<?> handlerFunction) {
        Condition.pairs(nested.element(), PredicateReader.read(predicate), Condition::aroundRoute)
                .forEach(this::add);
    }

    private void add(Condition route) {
        Set<String> methods = route.methods != null ? route.methods : Set.of();
        boolean never = route.methods != null && methods.isEmpty();
        if (route.path != null && !never) {
            PathPattern pattern = MappedEndpoints.parse(MappedEndpoints.parser(mapping), route.path);
            if (pattern != null) {
                endpoints.add(Endpoint.of(pattern, methods));
            }
        }
        complete &= route.path != null || never;
    }

    @Override
    public void resources(Function<ServerRequest, Optional<Resource>> lookupFunction) {}

    @Override
    public void attributes(Map<String, Object> attributes) {}

    @Override
    public void unknown(RouterFunction<?> routerFunction) {
        complete = false;
    }

    /**
     * The requirements of a predicate.
     *
     * @param path the required path; null for any
     * @param methods the required methods; null for any
     * @param complete whether the predicate has no other requirement
     */
    record Condition(@Nullable String path, @Nullable Set<String> methods, boolean complete) {

        static final Condition UNKNOWN = new Condition(null, null, false);

        static List<Condition> pairs(List<Condition> left, List<Condition> right, BinaryOperator<Condition> operator) {
            return left.stream()
                    .flatMap(one -> right.stream().map(other -> operator.apply(one, other)))
                    .toList();
        }

        /** Returns both requirements. Two paths can't be one pattern, so the second is assumed to hold. */
        Condition and(Condition other) {
            return with(path != null ? path : other.path, other);
        }

        Condition around(Condition inner) {
            return with(inner.path != null ? below(inner.path) : path, inner);
        }

        Condition aroundRoute(Condition route) {
            boolean everywhere = path == null && route.path == null;
            boolean leftOut = everywhere && !(complete && route.complete);
            return leftOut ? UNKNOWN : with(below(route.path != null ? route.path : "/**"), route);
        }

        private String below(String inner) {
            return path == null ? inner : (path.endsWith("/") ? path.substring(0, path.length() - 1) : path) + inner;
        }

        private Condition with(@Nullable String path, Condition other) {
            return new Condition(path, common(methods, other.methods), complete && other.complete);
        }

        private static @Nullable Set<String> common(@Nullable Set<String> left, @Nullable Set<String> right) {
            if (left == null || right == null) {
                return left == null ? right : left;
            }
            Set<String> both = new HashSet<>(left);
            both.retainAll(right);
            return both;
        }
    }

    /** A reader that turns a predicate into alternatives, of which one must hold. */
    private static final class PredicateReader implements RequestPredicates.Visitor {

        private final Deque<List<Condition>> read = new ArrayDeque<>();

        static List<Condition> read(RequestPredicate predicate) {
            PredicateReader reader = new PredicateReader();
            predicate.accept(reader);
            return reader.read.pop();
        }

        @Override
        public void method(Set<HttpMethod> methods) {
            Set<String> names = methods.stream().map(HttpMethod::name).collect(Collectors.toSet());
            read.push(List.of(new Condition(null, names, true)));
        }

        @Override
        public void path(String pattern) {
            read.push(List.of(new Condition(pattern, null, true)));
        }

        @Override
        public void endAnd() {
            List<Condition> right = read.pop();
            read.push(Condition.pairs(read.pop(), right, Condition::and));
        }

        @Override
        public void endOr() {
            List<Condition> right = read.pop();
            read.push(Stream.concat(read.pop().stream(), right.stream()).toList());
        }

        @Override
        public void endNegate() {
            read.pop();
            pushUnknown();
        }

        @Override
        @SuppressWarnings("removal")
        public void pathExtension(String extension) {
            pushUnknown();
        }

        @Override
        public void header(String name, String value) {
            pushUnknown();
        }

        @Override
        public void param(String name, String value) {
            pushUnknown();
        }

        @Override
        public void version(String version) {
            pushUnknown();
        }

        @Override
        public void unknown(RequestPredicate predicate) {
            pushUnknown();
        }

        private void pushUnknown() {
            read.push(List.of(Condition.UNKNOWN));
        }

        @Override
        public void startAnd() {}

        @Override
        public void and() {}

        @Override
        public void startOr() {}

        @Override
        public void or() {}

        @Override
        public void startNegate() {}
    }
}
