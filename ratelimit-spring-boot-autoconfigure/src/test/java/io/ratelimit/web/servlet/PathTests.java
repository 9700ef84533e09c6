package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A request that reaches a handler has been charged, in every spelling of its path and below every context path. */
class PathTests {

    private static final String YAML = """
            server.servlet.context-path: "%s"
            spring.mvc.servlet.path: "%s"
            spring.web.resources.add-mappings: false
            ratelimit:
              exclude-paths: [/health/**, /app/health/**]
              policies:
                all: { rate: 1000/1d, phase: before-authentication }
                endpoint: { key: endpoint, rate: 1000/1d, phase: before-authentication }
                login: { rate: 1000/1d, paths: "%s/login" }
                items: { key: ip, rate: 1000/1d, paths: "%s/items/{id}/**" }
                rest: { rate: 1000/1d, paths: /rest/** }
                elsewhere: { rate: 1000/1d, exclude-paths: [/public/**, /app/public/**] }
            """;

    private static final List<String> POLICIES = List.of("login", "items", "rest", "elsewhere");

    enum Mount {
        ROOT("", "/"),
        CONTEXT("/ctx", "/"),
        SERVLET("", "/app"),
        CONTEXT_AND_SERVLET("/ctx", "/app");

        private final String context;
        private final String servlet;

        Mount(String context, String servlet) {
            this.context = context;
            this.servlet = servlet;
        }

        String context() {
            return context;
        }

        String prefix() {
            return servlet.equals("/") ? "" : servlet;
        }

        /** The path below the context and the servlet in many spellings of each, and some of both at once. */
        List<String> spellings(String path) {
            List<String> heads = heads();
            List<String> tails = tails(path);
            List<String> spellings = new ArrayList<>();
            for (int head = 0; head < heads.size(); head++) {
                for (int tail = 0; tail < tails.size(); tail++) {
                    if (head == 0 || tail == 0 || (head + tail) % 9 == 0) {
                        spellings.add(heads.get(head) + tails.get(tail));
                    }
                }
            }
            return spellings.stream()
                    .filter(spelling -> spelling.startsWith("/"))
                    .distinct()
                    .toList();
        }

        private List<String> heads() {
            List<String> heads = new ArrayList<>(List.of(context + prefix()));
            for (String before : List.of("/", "/.", "/x/..", "/;a", "/%2e", "/;", "/x;a=b/..", "/%2e%2e")) {
                heads.add(before + context + prefix());
                heads.add(context + before + prefix());
            }
            for (String of : List.of(context, prefix())) {
                if (!of.isEmpty()) {
                    String odd = "/%" + Integer.toHexString(of.charAt(1)) + of.substring(2);
                    for (String other :
                            List.of(odd, of + ";", of + ";a=b", of + ";/..;" + of, of + "/.", of + "/x/..")) {
                        heads.add((context + prefix()).replace(of, other));
                    }
                }
            }
            return heads;
        }

        private static List<String> tails(String path) {
            String last = path.substring(path.lastIndexOf('/'));
            String before = path.substring(0, path.length() - last.length());
            String encoded = "/%" + Integer.toHexString(last.charAt(1)) + last.substring(2);
            List<String> tails = new ArrayList<>(List.of(path, "", "/", "/..", "//", ";", "/."));
            for (String tail : List.of(last, encoded, last.toUpperCase())) {
                for (String after : List.of(
                        "",
                        "/",
                        ";",
                        ";a=b",
                        ";a=b/",
                        "/;",
                        "/;a=b",
                        "//",
                        "/.",
                        "/..;" + last,
                        "?a=/b",
                        "%20",
                        ".json")) {
                    tails.add(before + tail + after);
                }
            }
            for (String odd :
                    List.of("/", "/.", "/x/..", "/;a=b", "/%2e", "/public/..", "/health/..", "/public/%2e%2e")) {
                tails.add(odd + path);
            }
            return tails;
        }

        TestServer start() {
            return TestServer.open(YAML.formatted(context, servlet, prefix(), prefix()), Api.class)
                    .start();
        }
    }

    private static final Map<Mount, TestServer> SERVERS = new EnumMap<>(Mount.class);

    private static TestServer server(Mount mount) {
        return SERVERS.computeIfAbsent(mount, Mount::start);
    }

    @AfterAll
    static void stop() {
        SERVERS.values().forEach(TestServer::close);
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatReachesTheHandlerIsCharged(Mount mount) {
        List<String> reached = new ArrayList<>();
        for (String target : mount.spellings("/login")) {
            Seen seen = send(mount, target);
            if (seen.response.body().equals("login")) {
                reached.add(target);
                assertThat(seen.charged).as(target).contains("login", "elsewhere");
                assertThat(seen.endpoint).as(target).isEqualTo("GET /login");
            } else {
                assertThat(seen.endpoint).as(target).isNotEqualTo("GET /items/{id}");
            }
        }
        assertThat(reached)
                .contains(
                        mount.context + mount.prefix() + "/login",
                        mount.context + mount.prefix() + "/login;a=b",
                        mount.context + mount.prefix() + "/login;",
                        mount.context + mount.prefix() + "/%6cogin");
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatReachesAPatternIsCharged(Mount mount) {
        int reached = 0;
        for (String target : mount.spellings("/items/7/parts")) {
            Seen seen = send(mount, target);
            if (seen.response.body().equals("parts")) {
                reached++;
                assertThat(seen.charged).as(target).contains("items", "elsewhere");
                assertThat(seen.endpoint).as(target).isEqualTo("GET /items/{id}/parts");
            }
        }
        assertThat(reached).isGreaterThan(5);
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatReachesAnotherServletIsCharged(Mount mount) {
        int reached = 0;
        for (String target : mount.spellings("/rest/x")) {
            String beside = target.replace("/app", "");
            if (!beside.startsWith("/")) {
                continue;
            }
            Seen seen = send(mount, beside);
            if (seen.response.body().equals("rest")) {
                reached++;
                assertThat(seen.charged).as(beside).contains("rest", "elsewhere");
                assertThat(seen.endpoint).as(beside).isEqualTo("none");
            }
        }
        assertThat(reached).isGreaterThan(20);
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatReachesACatchAllIsChargedForIt(Mount mount) {
        List<String> reached = new ArrayList<>();
        for (String target : mount.spellings("/files/x")) {
            Seen seen = send(mount, target);
            if (seen.response.body().equals("files")) {
                reached.add(target);
                assertThat(seen.charged).as(target).contains("elsewhere");
                assertThat(seen.endpoint).as(target).isEqualTo("GET /files/**");
            }
        }
        String files = mount.context + mount.prefix() + "/files";
        assertThat(reached).contains(files + "/x//", files + "/x/.", files + "/x/;a=b", files + "/x/..;/x");
    }

    @ParameterizedTest
    @EnumSource
    void excludedPathsAreFreeButForAPolicyWithAWrittenEarlyPhase(Mount mount) {
        for (String path : List.of("/health", "/health/live", "/%68ealth", "/health;a=b")) {
            Seen seen = send(mount, mount.context + mount.prefix() + path);
            assertThat(seen.response.body()).as(path).isEqualTo("healthy");
            assertThat(seen.charged).as(path).isEmpty();
            assertThat(seen.endpoint).as(path).isNotNull();
        }
    }

    @ParameterizedTest
    @EnumSource
    void aPolicysOwnExcludedPathsAreFreeOfThatPolicyAlone(Mount mount) {
        String mounted = mount.context + mount.prefix();
        assertThat(send(mount, mounted + "/public/x").charged).isEmpty();
        assertThat(send(mount, mounted + "/publication").charged).containsExactly("elsewhere");
        assertThat(send(mount, mounted + "/unknown").charged).containsExactly("elsewhere");
    }

    /** Sends a request and returns the charged policies. A request that passes the filters is charged to the policies without paths. */
    private static Seen send(Mount mount, String target) {
        TestServer server = server(mount);
        server.refill();
        Trace.clear();
        Response response = server.http().get(target);

        boolean entered = Trace.contains("entered");
        boolean errorDispatched = Trace.contains("error");
        assertThat(server.available("all")).as(target).isEqualTo(entered || errorDispatched ? 999 : 1000);
        assertThat(response.status()).as(target).isLessThan(500);
        List<String> charged = new ArrayList<>();
        for (String policy : POLICIES) {
            long left = policy.equals("items") ? server.available(policy, "127.0.0.1") : server.available(policy);
            assertThat(left).as(target).isBetween(999L, 1000L);
            if (left == 999) {
                charged.add(policy);
            }
        }
        List<String> endpoints = new ArrayList<>();
        for (String endpoint :
                List.of("none", "GET /login", "GET /items/{id}/parts", "GET /health/**", "GET /files/**")) {
            if (server.available("endpoint", endpoint) == 999) {
                endpoints.add(endpoint);
            }
        }
        assertThat(endpoints).as(target).hasSize(entered ? 1 : 0);
        return new Seen(response, charged, entered ? endpoints.get(0) : null);
    }

    private record Seen(Response response, List<String> charged, String endpoint) {}

    /** The way of the current request. */
    private static final class Trace {

        private static final List<String> MARKS = new CopyOnWriteArrayList<>();

        static void clear() {
            MARKS.clear();
        }

        static void mark(String mark) {
            MARKS.add(mark);
        }

        static boolean contains(String mark) {
            return MARKS.contains(mark);
        }
    }

    @RestController
    static class Api {

        @GetMapping("/login")
        String login() {
            return "login";
        }

        @GetMapping("/items/{id}/parts")
        String parts() {
            return "parts";
        }

        @GetMapping("/files/**")
        String files() {
            return "files";
        }

        @GetMapping("/health/**")
        String health() {
            return "healthy";
        }

        @Bean
        FilterRegistrationBean<Filter> entered() {
            FilterRegistrationBean<Filter> registration =
                    filter(Ordered.HIGHEST_PRECEDENCE, (request, response, chain) -> {
                        Trace.mark(request.getDispatcherType() == DispatcherType.ERROR ? "error" : "entered");
                        chain.doFilter(request, response);
                    });
            registration.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ERROR);
            return registration;
        }

        /** Answers failures behind it, since Spring MVC can't parse all of these paths, and each failure would fill the log. */
        @Bean
        FilterRegistrationBean<Filter> passed() {
            return filter(Ordered.LOWEST_PRECEDENCE, (request, response, chain) -> {
                try {
                    chain.doFilter(request, response);
                } catch (ServletException unreadablePath) {
                    ((HttpServletResponse) response).setStatus(400);
                }
            });
        }

        private static FilterRegistrationBean<Filter> filter(int order, Filter filter) {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>(filter);
            registration.setOrder(order);
            return registration;
        }

        @Bean
        ServletRegistrationBean<HttpServlet> rest() {
            HttpServlet servlet = new HttpServlet() {
                @Override
                protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                    response.getWriter().write("rest");
                }
            };
            return new ServletRegistrationBean<>(servlet, "/rest/*");
        }
    }
}
