package io.ratelimit.web.servlet.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.springframework.web.servlet.function.RequestPredicates.GET;
import static org.springframework.web.servlet.function.RequestPredicates.POST;
import static org.springframework.web.servlet.function.RequestPredicates.accept;
import static org.springframework.web.servlet.function.RequestPredicates.all;
import static org.springframework.web.servlet.function.RequestPredicates.method;
import static org.springframework.web.servlet.function.RequestPredicates.methods;
import static org.springframework.web.servlet.function.RequestPredicates.path;
import static org.springframework.web.servlet.function.RouterFunctions.nest;
import static org.springframework.web.servlet.function.RouterFunctions.route;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpMethod;
import org.springframework.http.MediaType;
import org.springframework.http.server.PathContainer;
import org.springframework.mock.web.MockServletConfig;
import org.springframework.mock.web.MockServletContext;
import org.springframework.util.AntPathMatcher;
import org.springframework.util.ClassUtils;
import org.springframework.web.HttpRequestHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.support.AnnotationConfigWebApplicationContext;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.config.annotation.EnableWebMvc;
import org.springframework.web.servlet.config.annotation.ResourceHandlerRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.servlet.function.HandlerFunction;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.function.support.RouterFunctionMapping;
import org.springframework.web.servlet.handler.AbstractUrlHandlerMapping;
import org.springframework.web.servlet.handler.SimpleUrlHandlerMapping;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.RequestMappingHandlerMapping;
import org.springframework.web.servlet.resource.ResourceHttpRequestHandler;
import org.springframework.web.util.pattern.PathPatternParser;

class EndpointIndexTests {

    private static final Method METHOD = ClassUtils.getMethod(Handler.class, "methods");
    private static final HandlerFunction<ServerResponse> FUNCTION =
            request -> ServerResponse.ok().build();

    @Test
    void everyAliasOfALiteralPathIsTheSameEndpoint() {
        EndpointIndex index = index(controllers("POST /login", "GET /caf\u00e9/two words"));
        for (String alias : List.of("/login", "/%6cogin", "/%6C%6Fgin", "/login;a=b", "/login;", "/log%69n;x;y=1")) {
            assertThat(endpoint(index, "POST", alias)).as(alias).isEqualTo("POST /login");
        }
        assertThat(endpoint(index, "GET", "/caf%C3%A9/two%20words")).isEqualTo("GET /caf\u00e9/two words");
    }

    @Test
    void aPathThatOnlyResemblesALiteralPathIsNoEndpoint() {
        EndpointIndex index = index(controllers("POST /login", "GET /a/b"));
        for (String other : List.of("/Login", "//login", "/x/login", "/login/x", "/login.json", "/%2flogin", "/")) {
            assertThat(endpoint(index, "POST", other)).as(other).isEqualTo(Endpoints.NONE);
        }
        assertThat(endpoint(index, "GET", "/a%2Fb")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "GET", "/a;/b")).isEqualTo("GET /a/b");
        assertThat(endpoint(index, "GET", "")).isEqualTo(Endpoints.NONE);
    }

    @Test
    void theMostSpecificPatternWins() {
        EndpointIndex index = index(controllers(
                "GET /**",
                "GET /items/{*rest}",
                "GET /items/{id}",
                "GET /items/{id:\\d+}/parts",
                "GET /items/{name:[a-z]+}/parts",
                "GET /items/new",
                "GET /{kind}/new",
                "GET /files/*.txt"));
        assertThat(endpoint(index, "GET", "/items/new")).isEqualTo("GET /items/new");
        assertThat(endpoint(index, "GET", "/items/n%65w")).isEqualTo("GET /items/new");
        assertThat(endpoint(index, "GET", "/items/7;v=1")).isEqualTo("GET /items/{id}");
        assertThat(endpoint(index, "GET", "/items/7/parts")).isEqualTo("GET /items/{id:\\d+}/parts");
        assertThat(endpoint(index, "GET", "/items/x/parts")).isEqualTo("GET /items/{name:[a-z]+}/parts");
        assertThat(endpoint(index, "GET", "/items/X/parts")).isEqualTo("GET /items/{*rest}");
        assertThat(endpoint(index, "GET", "/items")).isEqualTo("GET /items/{*rest}");
        assertThat(endpoint(index, "GET", "/cars/new")).isEqualTo("GET /{kind}/new");
        assertThat(endpoint(index, "GET", "/files/a.txt")).isEqualTo("GET /files/*.txt");
        assertThat(endpoint(index, "GET", "/files/a.png")).isEqualTo("GET /**");
        assertThat(endpoint(index, "GET", "/")).isEqualTo("GET /**");
    }

    @Test
    void aTrailingSlashIsIgnoredWhereNoEndpointHasOne() {
        EndpointIndex index =
                index(controllers("POST /login", "GET /items/{id}", "GET /dir/", "GET /dir"), handlers("files:/**"));
        assertThat(endpoint(index, "POST", "/login/")).isEqualTo("POST /login");
        assertThat(endpoint(index, "POST", "/login;a=b/")).isEqualTo("POST /login");
        assertThat(endpoint(index, "GET", "/items/7/")).isEqualTo("GET /items/{id}");
        assertThat(endpoint(index, "GET", "/dir/")).isEqualTo("GET /dir/");
        assertThat(endpoint(index, "GET", "/dir")).isEqualTo("GET /dir");
        assertThat(endpoint(index, "POST", "/login//")).isEqualTo(Endpoints.NONE);
    }

    @Test
    void theEmptyPatternIsTheRoot() {
        EndpointIndex index = index(controllers("GET ", "GET /", "/**"));
        assertThat(endpoint(index, "GET", "")).isEqualTo("GET /");
        assertThat(endpoint(index, "GET", "/")).isEqualTo("GET /");
        assertThat(endpoint(index, "POST", "/")).isEqualTo("/**");
    }

    @Test
    void methodsOfAMappingAreOneEndpointAndTheClientsMethodIsNeverPartOfIt() {
        EndpointIndex index = index(controllers("POST,GET /x", "DELETE /x", "/any"));
        assertThat(endpoint(index, "GET", "/x")).isEqualTo("GET,POST /x");
        assertThat(endpoint(index, "POST", "/x")).isEqualTo("GET,POST /x");
        assertThat(endpoint(index, "DELETE", "/x")).isEqualTo("DELETE /x");
        for (String invented : List.of("FOO", "get", "", "GET ", "PURGE", "none")) {
            assertThat(endpoint(index, invented, "/x")).as(invented).isEqualTo(Endpoints.NONE);
            assertThat(endpoint(index, invented, "/any")).as(invented).isEqualTo("/any");
        }
    }

    @Test
    void headIsAdmittedByGet() {
        EndpointIndex index = index(controllers("GET /x", "POST /y", "/any", "GET /**"));
        assertThat(endpoint(index, "HEAD", "/x")).isEqualTo("GET /x");
        assertThat(endpoint(index, "HEAD", "/any")).isEqualTo("/any");
        assertThat(endpoint(index, "HEAD", "/y")).isEqualTo("GET /**");
    }

    @Test
    void anExplicitHeadIsPreferredEvenToABetterPath() {
        EndpointIndex index = index(controllers("GET /items/{id}", "HEAD /items/*", "/cars/{id}", "GET /cars/**"));
        assertThat(endpoint(index, "HEAD", "/items/7")).isEqualTo("HEAD /items/*");
        assertThat(endpoint(index, "GET", "/items/7")).isEqualTo("GET /items/{id}");
        assertThat(endpoint(index, "HEAD", "/cars/7")).isEqualTo("GET /cars/**");
        assertThat(endpoint(index, "GET", "/cars/7")).isEqualTo("/cars/{id}");
    }

    @Test
    void optionsReachesOnlyEndpointsThatNameIt() {
        EndpointIndex index = index(controllers("GET /x", "/any", "OPTIONS /mine"), handlers("/any", "/hello"));
        assertThat(endpoint(index, "OPTIONS", "/x")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "OPTIONS", "/any")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "OPTIONS", "/mine")).isEqualTo("OPTIONS /mine");
        assertThat(endpoint(index, "OPTIONS", "/hello")).isEqualTo("/hello");
    }

    @Test
    void aWrongMethodIsNoEndpointAndNoLaterMappingIsTried() {
        EndpointIndex index = index(controllers("GET /x", "GET /x/{id}"), handlers("/x", "/y", "/x/**"));
        assertThat(endpoint(index, "POST", "/x")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "POST", "/x/7")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "POST", "/x/7/8")).isEqualTo("/x/**");
        assertThat(endpoint(index, "POST", "/y")).isEqualTo("/y");
    }

    @Test
    void amongMappingsThatOnlyParametersTellApartOneIsTaken() {
        RequestMappingHandlerMapping mapping = controllers("GET /x");
        register(
                mapping,
                "GET",
                RequestMappingInfo.paths("/x").methods(RequestMethod.GET).params("a"));
        register(mapping, "", RequestMappingInfo.paths("/x").headers("b"));
        EndpointIndex index = index(mapping);
        assertThat(endpoint(index, "GET", "/x")).isEqualTo("GET /x");
        assertThat(endpoint(index, "POST", "/x")).isEqualTo("/x");
    }

    @Test
    void eachPatternOfAMappingIsAnEndpoint() {
        RequestMappingHandlerMapping mapping = new RequestMappingHandlerMapping();
        register(mapping, "GET", RequestMappingInfo.paths("/a", "/b/{id}").methods(RequestMethod.GET));
        EndpointIndex index = index(mapping);
        assertThat(endpoint(index, "GET", "/a")).isEqualTo("GET /a");
        assertThat(endpoint(index, "GET", "/b/7")).isEqualTo("GET /b/{id}");
        assertThat(patterns(mapping)).containsExactly("/a", "/b/{id}");
    }

    @Test
    void caseIsIgnoredWhereTheParserIsConfiguredSo() {
        RequestMappingHandlerMapping mapping = new RequestMappingHandlerMapping();
        mapping.setPatternParser(caseInsensitive());
        controllers(mapping, "POST /Login", "GET /Items/{id}");
        EndpointIndex index = index(mapping, controllers("GET /strict"));
        assertThat(endpoint(index, "POST", "/LOG%69N")).isEqualTo("POST /Login");
        assertThat(endpoint(index, "GET", "/iTEMS/7")).isEqualTo("GET /Items/{id}");
        assertThat(endpoint(index, "GET", "/Strict")).isEqualTo(Endpoints.NONE);
    }

    @Test
    void mappingsAreTriedInOrder() {
        HandlerMapping actuator =
                controllers("GET /actuator/health", "GET /actuator/health/**", "POST /actuator/loggers/{name}");
        EndpointIndex index = index(
                actuator, functions(route(GET("/x"), FUNCTION)), controllers("/x", "GET /{a}/{b}"), handlers("/**"));
        assertThat(endpoint(index, "GET", "/actuator/health")).isEqualTo("GET /actuator/health");
        assertThat(endpoint(index, "GET", "/actuator/health/db")).isEqualTo("GET /actuator/health/**");
        assertThat(endpoint(index, "POST", "/actuator/loggers/io.x")).isEqualTo("POST /actuator/loggers/{name}");
        assertThat(endpoint(index, "GET", "/actuator/info")).isEqualTo("GET /{a}/{b}");
        assertThat(endpoint(index, "GET", "/x")).isEqualTo("GET /x");
        assertThat(endpoint(index, "POST", "/x")).isEqualTo("/x");
        assertThat(endpoint(index, "POST", "/y")).isEqualTo("/**");
    }

    @Test
    void routerFunctionsAreTriedInOrderAndTheirPathsNest() {
        RouterFunction<ServerResponse> routes = route().path(
                        "/api", api -> api.path("/{tenant}", tenant -> tenant.GET("/users/{id}", FUNCTION)
                                        .GET("/users/me", FUNCTION)
                                        .POST("", FUNCTION)
                                        .DELETE(FUNCTION))
                                .nest(accept(MediaType.APPLICATION_JSON), json -> json.GET("/json", FUNCTION)))
                .build()
                .and(nest(
                        method(HttpMethod.PUT).and(path("/put")),
                        route(methods(HttpMethod.PUT, HttpMethod.GET), FUNCTION)))
                .and(route(path("/or").or(POST("/else")).and(accept(MediaType.TEXT_HTML)), FUNCTION))
                .and(route(method(HttpMethod.valueOf("PURGE")), FUNCTION));
        EndpointIndex index = index(functions(routes));
        assertThat(endpoint(index, "GET", "/api/acme/users/me")).isEqualTo("GET /api/{tenant}/users/{id}");
        assertThat(endpoint(index, "HEAD", "/api/acme/users/me")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "POST", "/api/acme")).isEqualTo("POST /api/{tenant}");
        assertThat(endpoint(index, "DELETE", "/api/acme/what/ever")).isEqualTo("DELETE /api/{tenant}/**");
        assertThat(endpoint(index, "GET", "/api/json")).isEqualTo("GET /api/json");
        assertThat(endpoint(index, "PUT", "/put/x")).isEqualTo("PUT /put/**");
        assertThat(endpoint(index, "GET", "/put/x")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "GET", "/or")).isEqualTo("/or");
        assertThat(endpoint(index, "POST", "/else")).isEqualTo("POST /else");
        assertThat(endpoint(index, "GET", "/else")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "PURGE", "/cache")).isEqualTo("PURGE /**");
        assertThat(endpoint(index, "purge", "/cache")).isEqualTo(Endpoints.NONE);
    }

    @Test
    void aRouteThatMayBeAnythingHidesNothing() {
        RouterFunction<ServerResponse> routes = route(all(), FUNCTION)
                .and(route(path("/internal/**").negate(), FUNCTION))
                .and(nest(path("/below"), route(all(), FUNCTION)));
        EndpointIndex index = index(functions(routes), controllers("GET /x"));
        assertThat(endpoint(index, "GET", "/x")).isEqualTo("GET /x");
        assertThat(endpoint(index, "GET", "/below/x")).isEqualTo("/below/**");
    }

    @Test
    void filesAreNoEndpointsButUrlHandlersAre() {
        SimpleUrlHandlerMapping mapping = handlers("/legacy/*", "/", "files:/static/**", "/static/upload", "files:/**");
        SimpleUrlHandlerMapping behind = handlers("/hidden");
        EndpointIndex index = index(mapping, behind);
        assertThat(endpoint(index, "FOO", "/legacy/x")).isEqualTo("/legacy/*");
        assertThat(endpoint(index, "GET", "/static/upload")).isEqualTo("/static/upload");
        assertThat(endpoint(index, "GET", "/static/app.js")).isEqualTo(Endpoints.NONE);
        assertThat(endpoint(index, "GET", "/hidden")).isEqualTo(Endpoints.NONE);
        assertThat(patterns(mapping, behind)).containsExactly("/", "/hidden", "/legacy/*", "/static/upload");
    }

    @Test
    void theRootAndTheDefaultHandlerAreTriedLast() {
        SimpleUrlHandlerMapping mapping = handlers("/", "/x");
        mapping.setDefaultHandler(new UrlHandler("/**"));
        EndpointIndex index = index(mapping);
        assertThat(endpoint(index, "GET", "/")).isEqualTo("/");
        assertThat(endpoint(index, "GET", "/x")).isEqualTo("/x");
        assertThat(endpoint(index, "GET", "/y")).isEqualTo("/**");
    }

    @Test
    @SuppressWarnings("removal")
    void patternsForTheAntMatcherAreReadAsFarAsTheyParse() {
        RequestMappingInfo.BuilderConfiguration ant = new RequestMappingInfo.BuilderConfiguration();
        ant.setPathMatcher(new AntPathMatcher());
        RequestMappingHandlerMapping controllers = new RequestMappingHandlerMapping();
        controllers.registerMapping(
                RequestMappingInfo.paths("/items/{id}", "/a/**/b/**/c")
                        .options(ant)
                        .build(),
                new Handler(""),
                METHOD);
        SimpleUrlHandlerMapping handlers = new SimpleUrlHandlerMapping();
        handlers.setPatternParser(null);
        handlers(handlers, "/x", "/**/y/**");
        assertThat(patterns(controllers, handlers)).containsExactly("/items/{id}", "/x");
    }

    @Test
    void aMappingThatIsUnknownOrFailsIsSkipped() {
        HandlerMapping unknown = request -> null;
        HandlerMapping failing = new RequestMappingHandlerMapping() {
            @Override
            public Map<RequestMappingInfo, HandlerMethod> getHandlerMethods() {
                throw new IllegalStateException("no");
            }
        };
        EndpointIndex index = index(unknown, failing, new RouterFunctionMapping(), controllers("GET /x"));
        assertThat(endpoint(index, "GET", "/x")).isEqualTo("GET /x");
        assertThat(endpoint(index(), "GET", "/x")).isEqualTo(Endpoints.NONE);
    }

    @Test
    void readsTheMappingsOfADispatcherServlet() throws Exception {
        try (AnnotationConfigWebApplicationContext context = new AnnotationConfigWebApplicationContext()) {
            context.setServletContext(new MockServletContext());
            context.register(Application.class, Controller.class);
            DispatcherServlet servlet = new DispatcherServlet(context);
            servlet.init(new MockServletConfig(context.getServletContext()));
            List<HandlerMapping> read = servlet.getHandlerMappings();
            HandlerMapping[] mappings = read == null ? new HandlerMapping[0] : read.toArray(HandlerMapping[]::new);
            EndpointIndex index = index(mappings);
            assertThat(endpoint(index, "POST", "/api/login")).isEqualTo("POST /api/login");
            assertThat(endpoint(index, "HEAD", "/api")).isEqualTo("GET /api");
            assertThat(endpoint(index, "GET", "/static/x.js")).isEqualTo(Endpoints.NONE);
            assertThat(patterns(mappings)).containsExactly("/api", "/api/login");
        }
    }

    static String endpoint(EndpointIndex index, String method, String path) {
        return index.endpoint(method, requestPath(PathContainer.parsePath(path)));
    }

    /** Returns a plain path where nothing in it is escaped or empty, as the filter does. */
    static RequestPath requestPath(PathContainer path) {
        String text = path.value();
        boolean plain = text.startsWith("/") && text.matches("[^%;\\\\]*") && !text.contains("//");
        return plain ? RequestPath.plain(text) : RequestPath.of(path);
    }

    static EndpointIndex index(HandlerMapping... mappings) {
        return new EndpointIndex(Stream.of(mappings).map(MappedEndpoints::of).toList());
    }

    static Collection<String> patterns(HandlerMapping... mappings) {
        return new Endpoints("", "", List.of(mappings)).patterns();
    }

    /** Returns the mappings of these keys, such as {@code GET,POST /items/{id}}. */
    static RequestMappingHandlerMapping controllers(String... keys) {
        return controllers(new RequestMappingHandlerMapping(), keys);
    }

    static RequestMappingHandlerMapping controllers(RequestMappingHandlerMapping mapping, String... keys) {
        for (String key : keys) {
            int space = key.startsWith("/") ? 0 : key.indexOf(' ');
            String methods = key.substring(0, space);
            register(
                    mapping,
                    methods,
                    RequestMappingInfo.paths(key.substring(space).strip()).methods(parse(methods)));
        }
        return mapping;
    }

    static RequestMethod[] parse(String methods) {
        return methods.isEmpty()
                ? new RequestMethod[0]
                : List.of(methods.split(",")).stream()
                        .map(RequestMethod::valueOf)
                        .toArray(RequestMethod[]::new);
    }

    static void register(RequestMappingHandlerMapping mapping, String methods, RequestMappingInfo.Builder info) {
        RequestMappingInfo.BuilderConfiguration options = new RequestMappingInfo.BuilderConfiguration();
        options.setPatternParser(mapping.getPatternParser());
        mapping.registerMapping(info.options(options).build(), new Handler(methods), METHOD);
    }

    static RouterFunctionMapping functions(RouterFunction<?> routes) {
        RouterFunctionMapping mapping = new RouterFunctionMapping(routes);
        mapping.afterPropertiesSet();
        return mapping;
    }

    static SimpleUrlHandlerMapping handlers(String... patterns) {
        SimpleUrlHandlerMapping mapping = new SimpleUrlHandlerMapping();
        handlers(mapping, patterns);
        return mapping;
    }

    static void handlers(AbstractUrlHandlerMapping mapping, String... patterns) {
        for (String pattern : patterns) {
            boolean files = pattern.startsWith("files:");
            Object handler = files ? new ResourceHttpRequestHandler() : new UrlHandler(pattern);
            mapping.registerHandler(files ? pattern.substring("files:".length()) : pattern, handler);
        }
    }

    static PathPatternParser caseInsensitive() {
        PathPatternParser parser = new PathPatternParser();
        parser.setCaseSensitive(false);
        return parser;
    }

    record Handler(String methods) {}

    record UrlHandler(String key) implements HttpRequestHandler {
        @Override
        public void handleRequest(HttpServletRequest request, HttpServletResponse response) {}
    }

    @EnableWebMvc
    static class Application implements WebMvcConfigurer {
        @Override
        public void addResourceHandlers(ResourceHandlerRegistry registry) {
            registry.addResourceHandler("/**").addResourceLocations("classpath:/static/");
        }
    }

    @RestController
    @RequestMapping("/api")
    static class Controller {
        @GetMapping
        String get() {
            return "";
        }

        @PostMapping("/login")
        String login() {
            return "";
        }
    }
}
