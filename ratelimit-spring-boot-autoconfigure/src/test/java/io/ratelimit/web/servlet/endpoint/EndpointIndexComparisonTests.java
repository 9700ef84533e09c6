package io.ratelimit.web.servlet.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.springframework.http.HttpMethod;
import org.springframework.http.server.PathContainer;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.web.HttpRequestMethodNotSupportedException;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerExecutionChain;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.HandlerFunction;
import org.springframework.web.servlet.function.RequestPredicate;
import org.springframework.web.servlet.function.RequestPredicates;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerRequest;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.SimpleUrlHandlerMapping;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;
import org.springframework.web.util.ServletRequestPathUtils;
import org.springframework.web.util.pattern.PathPatternParser;
import org.springframework.web.util.pattern.PatternParseException;

/**
 * Random mappings and requests: the index must agree with Spring MVC. Three cases are not compared: trailing slashes, which the
 * index ignores; HEAD to an alias of a path, for which MVC may choose another handler than for the path itself; and
 * mappings of which two patterns match, where MVC prefers the mapping to the method if the better patterns are equal.
 */
class EndpointIndexComparisonTests {

    private static final List<String> WORDS =
            List.of("a", "b", "ab", "cb", "items", "x.txt", "y.txt", "A", "7", "42", "a-b", "\u00e9");
    private static final List<String> PATTERNS = List.of(
            "{v%d}", "{v%d}", "{v%d:\\d+}", "{v%d:[a-z]+}", "*", "a*", "?b", "*.txt", "{v%d}-{w%<d}", "{v%d}.txt");
    private static final List<String> MAPPED =
            List.of("", "", "GET", "GET", "POST", "HEAD", "OPTIONS", "GET,POST", "GET,HEAD", "DELETE", "OPTIONS,PUT");
    private static final List<String> SENT =
            List.of("GET", "GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PURGE", "get", "FOO");

    private static int compared;

    private SplittableRandom random = new SplittableRandom();
    private int variables;

    @RepeatedTest(300)
    void agreesWithSpringMvc(RepetitionInfo run) throws Exception {
        random = new SplittableRandom(run.getCurrentRepetition());
        PathPatternParser parser = new PathPatternParser();
        parser.setCaseSensitive(random.nextInt(4) > 0);
        List<HandlerMapping> mappings = mappings(parser);
        EndpointIndex index = EndpointIndexTests.index(mappings.toArray(HandlerMapping[]::new));
        Collection<String> patterns = EndpointIndexTests.patterns(mappings.toArray(HandlerMapping[]::new));
        for (int i = 0; i < 50; i++) {
            MockHttpServletRequest request = request(parser.isCaseSensitive());
            String expected = resolve(mappings, request);
            PathContainer path = ServletRequestPathUtils.parse(request).pathWithinApplication();
            String found = index.endpoint(request.getMethod(), EndpointIndexTests.requestPath(path));
            assertThat(index.endpoint(request.getMethod(), RequestPath.of(path)))
                    .as("seed %d, request %d, parsed", run.getCurrentRepetition(), i)
                    .isEqualTo(found);
            assertThat(expected != null ? found : null)
                    .as(
                            "seed %d, request %d, %s %s among %s",
                            run.getCurrentRepetition(), i, request.getMethod(), request.getRequestURI(), patterns)
                    .isEqualTo(expected);
            if (expected != null) {
                assertThatVariablesAreThoseOfMvc(index, request, run.getCurrentRepetition());
            }
        }
    }

    /** Returns the path variables of controllers; other mappings store theirs elsewhere or not at all. */
    private static void assertThatVariablesAreThoseOfMvc(
            EndpointIndex index, MockHttpServletRequest request, int seed) {
        if (request.getAttribute(HandlerMapping.BEST_MATCHING_HANDLER_ATTRIBUTE) instanceof HandlerMethod) {
            assertThat((Object) index.pathVariables(
                            request.getMethod(),
                            EndpointIndexTests.requestPath(
                                    ServletRequestPathUtils.parse(request).pathWithinApplication())))
                    .as("seed %d, %s %s", seed, request.getMethod(), request.getRequestURI())
                    .isEqualTo(request.getAttribute(HandlerMapping.URI_TEMPLATE_VARIABLES_ATTRIBUTE));
            compared++;
        }
    }

    @AfterAll
    static void variablesWereCompared() {
        assertThat(compared).isGreaterThan(1000);
    }

    private MockHttpServletRequest request(boolean caseSensitive) {
        String method = pick(SENT);
        if (method.equals("HEAD")) {
            return new MockHttpServletRequest(
                    caseSensitive ? "HEAD" : "GET", path(false).replace("%C3%A9", "e"));
        }
        return new MockHttpServletRequest(method, path(random.nextBoolean()));
    }

    private List<HandlerMapping> mappings(PathPatternParser parser) {
        List<HandlerMapping> mappings = new ArrayList<>();
        sometimes(2, () -> functions(parser), mappings);
        sometimes(4, () -> controllers(parser), mappings);
        mappings.add(controllers(parser));
        sometimes(2, () -> handlers(parser), mappings);
        sometimes(2, () -> EndpointIndexTests.handlers("files:/**"), mappings);
        return mappings;
    }

    private void sometimes(int oneIn, Supplier<HandlerMapping> mapping, List<HandlerMapping> mappings) {
        if (random.nextInt(oneIn) == 0) {
            mappings.add(mapping.get());
        }
    }

    private RequestMappingHandlerMapping controllers(PathPatternParser parser) {
        RequestMappingHandlerMapping mapping = new RequestMappingHandlerMapping();
        mapping.setPatternParser(parser);
        for (int i = random.nextInt(1, 15); i > 0; i--) {
            String methods = pick(MAPPED);
            String[] patterns = random.nextInt(5) > 0
                    ? new String[] {pattern()}
                    : new String[] {
                        "/a" + pattern().replace("/**/", "/"), "/b" + pattern().replace("/**/", "/")
                    };
            try {
                EndpointIndexTests.register(
                        mapping,
                        methods,
                        RequestMappingInfo.paths(patterns).methods(EndpointIndexTests.parse(methods)));
            } catch (IllegalStateException ex) {
                assertThat(ex).hasMessageContaining("Ambiguous mapping");
            }
        }
        return mapping;
    }

    private HandlerMapping functions(PathPatternParser parser) {
        RouterFunction<ServerResponse> routes = Stream.generate(() -> routes("", 2))
                .limit(random.nextInt(1, 5))
                .reduce(RouterFunction::and)
                .orElseThrow();
        RouterFunctionMapping mapping = new RouterFunctionMapping(routes);
        mapping.setPatternParser(parser);
        mapping.afterPropertiesSet();
        return mapping;
    }

    private RouterFunction<ServerResponse> routes(String prefix, int depth) {
        if (depth > 0 && random.nextInt(3) == 0) {
            String nested = "/" + (random.nextBoolean() ? pick(WORDS) : "{n" + variables++ + "}");
            RouterFunction<ServerResponse> inner =
                    routes(prefix + nested, depth - 1).and(routes(prefix + nested, depth - 1));
            return RouterFunctions.nest(RequestPredicates.path(nested), inner);
        }
        String methods = pick(MAPPED);
        boolean everything = !prefix.isEmpty() && random.nextInt(4) == 0;
        String pattern = everything ? "/**" : pattern();
        RequestPredicate predicate = everything ? RequestPredicates.all() : RequestPredicates.path(pattern);
        if (!methods.isEmpty()) {
            predicate = RequestPredicates.methods(httpMethods(methods)).and(predicate);
        }
        return RouterFunctions.route(predicate, new Function(key(methods, prefix + pattern)));
    }

    private static HttpMethod[] httpMethods(String methods) {
        return Arrays.stream(methods.split(",")).map(HttpMethod::valueOf).toArray(HttpMethod[]::new);
    }

    private HandlerMapping handlers(PathPatternParser parser) {
        SimpleUrlHandlerMapping mapping = new SimpleUrlHandlerMapping();
        mapping.setPatternParser(parser);
        Stream.generate(() -> (random.nextInt(4) == 0 ? "files:" : "") + pattern())
                .limit(random.nextInt(1, 6))
                .filter(pattern -> !pattern.endsWith("/*") || pattern.lastIndexOf('/') > "files:".length())
                .collect(Collectors.toCollection(TreeSet::new))
                .stream()
                .filter(pattern -> !mapping.getHandlerMap().containsKey(pattern.replace("files:", "")))
                .filter(pattern -> !pattern.equals("files:/"))
                .forEach(pattern -> EndpointIndexTests.handlers(mapping, pattern));
        return mapping;
    }

    private String pattern() {
        int length = random.nextInt(4);
        if (length == 0) {
            return pick(List.of("/", "/**", "/{*rest}", "/**/a"));
        }
        String segments =
                IntStream.range(0, length).mapToObj(i -> "/" + segment()).collect(Collectors.joining());
        return segments + pick(List.of("", "", "", "", "/**", "/{*rest}"));
    }

    private String segment() {
        return random.nextInt(3) > 0 ? pick(WORDS) : pick(PATTERNS).formatted(variables++);
    }

    private String path(boolean alias) {
        int length = random.nextInt(5);
        return length == 0
                ? "/"
                : IntStream.range(0, length)
                        .mapToObj(i -> "/" + encode(pick(WORDS), alias))
                        .collect(Collectors.joining());
    }

    private String encode(String word, boolean alias) {
        StringBuilder encoded = new StringBuilder();
        for (char c : word.toCharArray()) {
            encoded.append(c > 127 ? "%C3%A9" : alias && random.nextInt(3) == 0 ? "%" + Integer.toHexString(c) : c);
        }
        return encoded + (alias && random.nextInt(3) == 0 ? pick(List.of(";", ";v=1", ";a=b;c")) : "");
    }

    private <T> T pick(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    /** Finds the handler as the {@code DispatcherServlet} does; null if it fails, as for two equally good handlers. */
    private @Nullable String resolve(List<HandlerMapping> mappings, MockHttpServletRequest request) throws Exception {
        for (HandlerMapping mapping : mappings) {
            try {
                HandlerExecutionChain chain = mapping.getHandler(request);
                if (chain != null) {
                    return key(chain.getHandler(), request);
                }
            } catch (HttpRequestMethodNotSupportedException ex) {
                return Endpoints.NONE;
            } catch (IllegalStateException | PatternParseException ex) {
                assertThat(ex.getMessage()).containsAnyOf("Ambiguous handler methods", "at the start or end");
                return null;
            }
        }
        return Endpoints.NONE;
    }

    private String key(Object handler, MockHttpServletRequest request) {
        if (handler instanceof HandlerMethod method
                && method.getBean() instanceof EndpointIndexTests.Handler controller) {
            Object pattern = request.getAttribute(HandlerMapping.BEST_MATCHING_PATTERN_ATTRIBUTE);
            return key(controller.methods(), String.valueOf(pattern));
        } else if (handler instanceof EndpointIndexTests.UrlHandler url) {
            return url.key();
        }
        return handler instanceof Function function ? function.key() : Endpoints.NONE;
    }

    private static String key(String methods, String pattern) {
        return methods.isEmpty()
                ? pattern
                : String.join(",", new TreeSet<>(List.of(methods.split(",")))) + " " + pattern;
    }

    record Function(String key) implements HandlerFunction<ServerResponse> {
        @Override
        public ServerResponse handle(ServerRequest request) {
            return ServerResponse.ok().build();
        }
    }
}
