package io.ratelimit.web.servlet.endpoint;

import io.ratelimit.web.servlet.endpoint.RouterFunctionEndpoints.Condition;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.springframework.http.HttpMethod;
import org.springframework.web.servlet.function.RequestPredicate;
import org.springframework.web.servlet.function.RequestPredicates;

/** A reader that turns a predicate into alternatives, of which one must hold. */
final class PredicateReader implements RequestPredicates.Visitor {

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
