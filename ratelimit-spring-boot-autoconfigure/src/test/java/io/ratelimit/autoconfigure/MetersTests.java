package io.ratelimit.autoconfigure;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.ratelimit.annotation.RateLimitExempt;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.BasicSecurity;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.TestServer;
import io.ratelimit.web.servlet.rejection.WaitingRejections;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** The meters as Prometheus scrapes them, on a real Tomcat. */
@Tag("slow")
class MetersTests {

    private static final String YAML = """
            management.endpoints.web.exposure.include: prometheus
            management.prometheus.metrics.export.enabled: true
            ratelimit:
              exclude-paths: /actuator/**
              policies:
                global: { rate: 100000000/1h }
                per-user: { key: user, rate: 2/1h, paths: [/items/**, /late/**] }
                strict-user: { key: user, rate: 1/1h, paths: /items/**, mode: shadow }
                early: { key: ip, rate: 3/1h, paths: [/early/**, /app/**, /nowhere/**], phase: before-authentication }
                keyed: { key: ["header:X-Key"], rate: 5/1h, paths: /keyed, on-missing-key: deny }
                lenient:
                  key: ip
                  rate: 5/1h
                  paths: /keyed
                  overrides: [{ keys: [127.0.0.66], mode: off }]
                many: { key: ["header:X-Many", "query:many"], rate: 1/1h, paths: /many, max-keys: 10 }
                slow: { key: ip, rate: 1/1h, paths: /late/**, rejection-delay: 5s }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, BasicSecurity.class, Api.class);

    private final Scrape before = Scrape.of(server);

    @Test
    void aRequestIsCountedForEachPolicyByItsOutcome() {
        for (int i = 0; i < 3; i++) {
            server.http().get("/items/" + i, basic("alice"));
        }

        Scrape after = Scrape.of(server);
        assertThat(after.minus(before, decisions("per-user", "allowed"))).isEqualTo(2);
        assertThat(after.minus(before, decisions("per-user", "denied"))).isEqualTo(1);
        assertThat(after.minus(before, decisions("strict-user", "allowed"))).isEqualTo(1);
        assertThat(after.minus(before, decisions("strict-user", "shadow-denied")))
                .isEqualTo(1);
        assertThat(after.minus(before, decisions("global", "denied"))).isZero();
        assertThat(after.lines())
                .contains(
                        "# TYPE ratelimit_decisions_total counter",
                        "# TYPE ratelimit_events_total counter",
                        "# TYPE ratelimit_wait_seconds summary",
                        "# TYPE ratelimit_available gauge",
                        "# TYPE ratelimit_keys gauge",
                        "# TYPE ratelimit_queued gauge");
        assertThat(after.value("ratelimit_available{policy=\"global\"}")).isEqualTo(server.available("global"));
        assertThat(after.value("ratelimit_keys{policy=\"per-user\"}")).isPositive();
        assertThat(after.value("ratelimit_queued{policy=\"per-user\"}")).isZero();
        assertThat(after.value("ratelimit_wait_seconds_count{policy=\"per-user\"}"))
                .isZero();
    }

    @Test
    void theEventsAreCounted() {
        server.http().get("/keyed", basic("alice"));
        server.http().from("127.0.0.66").get("/keyed", basic("alice"), "X-Key: mine");
        server.http().get("/keyed/exempt", basic("alice"));
        server.http().get("/items/exempt", basic("alice"));

        Scrape after = Scrape.of(server);
        assertThat(after.minus(before, event("keyed", "missing-key"))).isEqualTo(1);
        assertThat(after.minus(before, decisions("keyed", "denied"))).isEqualTo(1);
        assertThat(after.minus(before, event("lenient", "exempt")))
                .as("by an override")
                .isEqualTo(1);
        assertThat(after.minus(before, event("per-user", "exempt")))
                .as("by the annotation")
                .isEqualTo(1);
        assertThat(after.minus(before, event("global", "exempt")))
                .as("by the annotation, twice")
                .isEqualTo(2);
        assertThat(after.minus(before, event("keyed", "exempt")))
                .as("it isn't for that path")
                .isZero();
    }

    @Test
    void aHundredThousandKeysAddNoMeterAndNoTag() throws ServletException, IOException {
        server.http().get("/many", basic("alice"));
        server.http().request("BREW", "/many", basic("alice"));
        Set<Meter.Id> known = ids();
        MeterRegistry registry = server.bean(MeterRegistry.class);
        List<Filter> filters = filters();
        for (int i = 0; i < 100_000; i++) {
            MockHttpServletRequest request = new MockHttpServletRequest("METHOD" + i, "/many");
            request.addHeader("X-Many", "key" + i);
            request.setQueryString("many=" + i);
            request.setUserPrincipal(new TestingAuthenticationToken("user" + i, ""));
            request.setRemoteAddr("10." + (i >> 16) + "." + (i >> 8 & 255) + "." + (i & 255));
            for (Filter filter : filters) {
                filter.doFilter(request, new MockHttpServletResponse(), (passed, response) -> {});
            }
        }

        assertThat(ids()).isEqualTo(known);
        assertThat(registry.get("ratelimit.events")
                        .tags("policy", "many", "event", "overflow")
                        .counter()
                        .count())
                .isGreaterThan(90_000);
    }

    private static List<Filter> filters() {
        return server.beans(FilterRegistrationBean.class).stream()
                .<Filter>map(registration -> registration.getFilter())
                .filter(filter -> filter.getClass().getSimpleName().equals("RateLimitFilter"))
                .toList();
    }

    private static Set<Meter.Id> ids() {
        return server.bean(MeterRegistry.class).getMeters().stream()
                .map(Meter::getId)
                .filter(id ->
                        id.getName().startsWith("ratelimit") || id.getName().startsWith("http"))
                .collect(Collectors.toSet());
    }

    @ParameterizedTest
    @CsvSource({
        "/items/1, alice, /items/{id}, 2, 429",
        "/early/a%6c;x=secret, alice, /early/{name}, 3, 429",
        "/early/secret, wrong, /early/{name}, 3, 429",
        "/app/secret, alice, /app/{function}, 3, 429",
        "/nowhere/secret, alice, UNKNOWN, 3, 429",
        "/keyed, alice, /keyed, 0, 403",
    })
    void aRejectedRequestHasThePatternOfItsEndpointInTheMetersOfHttp(
            String path, String password, String uri, int allowed, int status) {
        String alice = basic("alice", password);
        for (int i = 0; i < allowed; i++) {
            server.http().get(path, alice);
        }
        double counted = requests(uri, status);

        assertThat(server.http().get(path, alice).status()).isEqualTo(status);

        Awaitility.await().until(() -> requests(uri, status) == counted + 1);
        assertThat(server.bean(MeterRegistry.class).find("http.server.requests").meters())
                .extracting(meter -> meter.getId().getTag("uri"))
                .noneMatch(known -> known.contains("secret"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"/items/1", "/app/one", "/actuator/health"})
    void thePatternIsTheOneThatSpringMvcHasForRequestsThatPass(String path) {
        String yaml = """
                server.servlet.context-path: /shop
                spring.mvc.servlet.path: /mvc
                ratelimit.policies.once: { key: endpoint, rate: 1/1h }
                """;
        try (TestServer shop =
                TestServer.secured(yaml, BasicSecurity.class, Api.class).start()) {
            for (int i = 0; i < 2; i++) {
                shop.http().get("/shop/mvc" + path, basic("alice"));
            }
            MeterRegistry registry = shop.bean(MeterRegistry.class);
            Awaitility.await()
                    .until(() -> registry.find("http.server.requests").timers().stream()
                                    .mapToLong(Timer::count)
                                    .sum()
                            == 2);
            assertThat(registry.find("http.server.requests").timers())
                    .extracting(timer -> timer.getId().getTag("status"))
                    .contains("429")
                    .hasSize(2);
            assertThat(registry.find("http.server.requests").timers())
                    .extracting(timer -> timer.getId().getTag("uri"))
                    .doesNotContain("UNKNOWN")
                    .satisfies(uris -> assertThat(Set.copyOf(uris)).hasSize(1));
        }
    }

    @Test
    void aDelayedRejectionHasThePattern() {
        server.http().get("/late/1", basic("alice"));
        try (RawHttp.Connection connection = server.http().open()) {
            connection.write(RawHttp.text("GET", "/late/2", basic("alice"), "Connection: close"));
            Awaitility.await().until(() -> WaitingRejections.count(server) == 1);
            server.advance(Duration.ofSeconds(5));
            assertThat(connection.readToEnd().status()).isEqualTo(429);
        }

        Awaitility.await().until(() -> requests("/late/{id}", 429) == 1);
        Scrape after = Scrape.of(server);
        assertThat(after.minus(before, event("slow", "delayed"))).isEqualTo(1);
        assertThat(after.minus(before, event("global", "delayed"))).isZero();
    }

    @Test
    void aRejectedCallHasThePatternOfSpringMvc() {
        IntStream.range(0, 2).forEach(i -> server.http().get("/called/" + i, basic("alice")));

        Awaitility.await().until(() -> requests("/called/{id}", 429) == 1);
        assertThat(Scrape.of(server).minus(before, decisions("called", "denied")))
                .isEqualTo(1);
    }

    /** Returns the number of requests counted under a pattern, over all methods. */
    private static double requests(String uri, int status) {
        return server
                .bean(MeterRegistry.class)
                .find("http.server.requests")
                .tags("uri", uri, "status", Integer.toString(status))
                .timers()
                .stream()
                .mapToLong(Timer::count)
                .sum();
    }

    private static String decisions(String policy, String outcome) {
        return "ratelimit_decisions_total{backend=\"local\",outcome=\"" + outcome + "\",policy=\"" + policy + "\"}";
    }

    private static String event(String policy, String event) {
        return "ratelimit_events_total{event=\"" + event + "\",policy=\"" + policy + "\"}";
    }

    /** The response of {@code /actuator/prometheus}. */
    private record Scrape(List<String> lines) {

        static Scrape of(TestServer server) {
            RawHttp.Response answer = server.http().get("/actuator/prometheus", basic("alice"));
            assertThat(answer.status()).isEqualTo(200);
            return new Scrape(answer.body().lines().toList());
        }

        double value(String series) {
            return lines.stream()
                    .filter(line -> line.startsWith(series + " "))
                    .mapToDouble(line -> Double.parseDouble(line.substring(series.length() + 1)))
                    .findAny()
                    .orElseThrow(() -> new AssertionError(series + " is not in\n" + String.join("\n", lines)));
        }

        double minus(Scrape before, String series) {
            return value(series) - before.value(series);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @RestController
    static class Api {

        @GetMapping({"/items/{id}", "/early/{name}", "/late/{id}"})
        String item(@PathVariable Map<String, String> variables) {
            return variables.toString();
        }

        @GetMapping({"/keyed", "/many"})
        String keyed() {
            return "keyed";
        }

        @RateLimitExempt
        @GetMapping({"/keyed/exempt", "/items/exempt"})
        String exempt() {
            return "exempt";
        }

        @RateLimited(name = "called", rate = "1/1h")
        @GetMapping("/called/{id}")
        public String called() {
            return "called";
        }

        @Bean
        RouterFunction<ServerResponse> functions() {
            return RouterFunctions.route()
                    .GET("/app/{function}", request -> ServerResponse.ok().build())
                    .build();
        }
    }
}
