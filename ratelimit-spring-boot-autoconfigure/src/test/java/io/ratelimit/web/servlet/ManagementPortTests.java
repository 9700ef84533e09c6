package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.annotation.RateLimited;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.server.context.WebServerInitializedEvent;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.HandlerMapping;

/** Policies on the management server's own port. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ManagementPortTests {

    private static final String MANAGEMENT = """
            management:
              health.defaults.enabled: false
              server: { port: 0, base-path: %s }
              endpoints.web: { exposure.include: "health, info", cors.allowed-origins: "http://page.example" }
            """;

    @Test
    void guessesOfPasswordsAreLimitedOnEveryPort() {
        String yaml = MANAGEMENT.formatted("") + """
                ratelimit.policies:
                  guard: { key: ip, rate: 10/1h, phase: before-authentication }
                  user: { key: user, rate: 2/1h }
                """;
        try (TestServer server =
                TestServer.secured(yaml, Api.class, BasicSecurity.class).start()) {
            Map<Integer, Integer> statuses = new HashMap<>();
            for (int i = 0; i < 100; i++) {
                Response answer = management(server).get("/actuator/info", basic("alice", "guess" + i));
                statuses.merge(answer.status(), 1, Integer::sum);
            }
            assertThat(statuses).isEqualTo(Map.of(401, 10, 429, 90));
            assertThat(server.http().get("/", basic("alice")).status())
                    .as("the same bucket")
                    .isEqualTo(429);

            server.refill();
            assertThat(server.http().get("/", basic("alice")).status()).isEqualTo(200);
            Response second = management(server).get("/actuator/info", basic("alice"));
            assertThat(second.status()).isEqualTo(200);
            assertThat(second.header("RateLimit")).isEqualTo("\"user\";r=0;t=1800");
            Response third = management(server).get("/actuator/info", basic("alice"));
            assertThat(third.status()).isEqualTo(429);
            assertThat(third.body()).contains("[\"user\"]");
        }
    }

    @Test
    void policiesApplyToThePathsOfTheManagementServer() {
        String yaml = MANAGEMENT.formatted("/ops") + """
                server.servlet.context-path: /shop
                ratelimit.exclude-paths: /actuator/health
                ratelimit.policies:
                  info: { key: [ip, endpoint], rate: 2/1h, paths: "/actuator/{id}" }
                  elsewhere: { key: ip, rate: 1/1h, paths: /orders }
                """;
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            RawHttp http = management(server);
            for (int i = 0; i < 3; i++) {
                assertThat(http.get("/ops/actuator/health").status()).isEqualTo(200);
            }
            assertThat(http.get("/ops/actuator/info").header("RateLimit")).isEqualTo("\"info\";r=1;t=1800");
            assertThat(http.get("/ops/actuator/%69nfo;a=b").status()).isEqualTo(200);
            assertThat(server.available("info", "127.0.0.1", "GET /actuator/info"))
                    .isZero();
            Response refused = http.get("/ops/actuator/info", "Origin: http://page.example");
            assertThat(refused.status()).isEqualTo(429);
            assertThat(refused.body()).contains("[\"info\"]");
            assertThat(refused.header("Access-Control-Allow-Origin")).isEqualTo("http://page.example");
            assertThat(server.http().get("/shop/orders").status()).isEqualTo(200);
            assertThat(server.http().get("/shop/orders").status()).isEqualTo(429);
        }
    }

    @Test
    void aRejectionIsDelayedOnTheManagementPort() {
        String yaml =
                MANAGEMENT.formatted("") + "ratelimit.policies.info: { key: ip, rate: 1/1h, rejection-delay: 2s }";
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            assertThat(management(server).get("/actuator/info").status()).isEqualTo(200);
            try (RawHttp.Connection connection = management(server).open()) {
                ManualTimeSource time = server.bean(ManualTimeSource.class);
                int before = time.waiting();
                connection.write(RawHttp.text("GET", "/actuator/info"));
                await().until(() -> time.waiting() == before + 1);
                assertThat(connection.hasAnswer()).isFalse();
                server.advance(Duration.ofSeconds(2));
                Response refused = connection.read();
                assertThat(refused.status()).isEqualTo(429);
                assertThat(refused.header("X-RetryAfterMs")).isEqualTo("3598000");
            }
        }
    }

    @Test
    void aFilterThatTheApplicationDisablesOrMovesIsSoOnTheManagementPort() {
        String yaml = MANAGEMENT.formatted("") + "ratelimit.policies.info: { key: ip, rate: 1/1h }";
        try (TestServer server =
                TestServer.open(yaml, Api.class, Disabled.class).start()) {
            for (int i = 0; i < 3; i++) {
                assertThat(management(server).get("/actuator/info").status()).isEqualTo(200);
            }
            String name = "rateLimitFilterBeforeAuthentication";
            assertThat(server.bean(Disabled.class).contexts)
                    .hasSize(2)
                    .allMatch(context -> context.containsLocalBean(name))
                    .allMatch(context ->
                            context.getBean(name, FilterRegistrationBean.class).getOrder() == 77);
        }
    }

    @Test
    void aDeniedCallIsRejectedOnTheManagementPort() {
        String yaml = MANAGEMENT.formatted("").replace("info", "info, work")
                + "ratelimit.policies.info: { key: ip, rate: 9/1h }";
        try (TestServer server = TestServer.open(yaml, Api.class, WorkEndpoint.class, OwnEndpoints.class)
                .start()) {
            assertThat(management(server).get("/actuator/work").status()).isEqualTo(200);
            Response refused = management(server).get("/actuator/work");
            assertThat(refused.status()).isEqualTo(429);
            assertThat(refused.body()).contains("[\"work\"]");
        }
    }

    @Test
    void overridesAndVariablesOfItsEndpointsAreNoMistakes(CapturedOutput output) {
        String yaml = MANAGEMENT.formatted("/ops") + """
                server.servlet.context-path: /actuator
                ratelimit.policies:
                  info:
                    key: endpoint
                    rate: 2/1h
                    overrides:
                    - { keys: [GET /actuator/info, GET /orders], rate: 1/1h }
                    - { keys: [GET /nowhere], rate: 1/1h }
                  components: { key: ["path-variable:id", "path-variable:missing"], rate: 9/1h }
                  other: { rate: 2/1h, paths: /actuator/info }
                """;
        try (TestServer server = TestServer.open(yaml.replace("info\"", "info, item\""), Api.class, ItemEndpoint.class)
                .start()) {
            assertThat(management(server).get("/ops/actuator/item/5").status()).isEqualTo(200);
            assertThat(management(server).get("/ops/actuator/info").status()).isEqualTo(200);
            assertThat(management(server).get("/ops/actuator/info").body())
                    .as("the override applies there")
                    .contains("[\"info\"]");
            List<String> warnings = output.getOut()
                    .lines()
                    .filter(line -> line.contains("WARN") && line.contains("StartupReport"))
                    .toList();
            assertThat(warnings)
                    .noneMatch(line -> line.contains("names the endpoint 'GET /actuator/info'"))
                    .noneMatch(line -> line.contains("names the endpoint 'GET /orders'"))
                    .noneMatch(line -> line.contains("path variable 'id'"))
                    .noneMatch(line -> line.contains("begins with the context path"))
                    .anyMatch(line -> line.contains("names the endpoint 'GET /nowhere', which doesn't exist"))
                    .anyMatch(line -> line.contains("No endpoint has the path variable 'missing'"));
        }
    }

    @Test
    void startsWithoutLimits() {
        String yaml =
                MANAGEMENT.formatted("") + "ratelimit: { enabled: false, policies.info: { key: ip, rate: 1/1h } }";
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            for (int i = 0; i < 3; i++) {
                assertThat(management(server).get("/actuator/info").status()).isEqualTo(200);
            }
        }
    }

    private static RawHttp management(TestServer server) {
        int port = server.bean(Environment.class).getRequiredProperty("local.management.port", int.class);
        return new RawHttp(port, "127.0.0.1");
    }

    @RestController
    static class Api {

        @GetMapping({"/", "/orders"})
        String hello() {
            return "hello";
        }
    }

    @Endpoint(id = "work")
    static class WorkEndpoint {

        @ReadOperation
        @RateLimited(name = "work", rate = "1/1h")
        public String work() {
            return "done";
        }
    }

    @Endpoint(id = "item")
    static class ItemEndpoint {

        @ReadOperation
        public String item(@Selector String id) {
            return id;
        }
    }

    /** Has another name than the bean that it replaces. */
    static class OwnEndpoints {

        @Bean
        Endpoints own(DispatcherServletRegistrationBean servlet, ObjectProvider<HandlerMapping> mappings) {
            return new Endpoints(
                    servlet.getServletName(),
                    servlet.getPrefix(),
                    mappings.orderedStream().toList());
        }
    }

    static class Disabled {

        /** Those of the application and of its management server. */
        private final List<ApplicationContext> contexts = new ArrayList<>();

        @EventListener
        void started(WebServerInitializedEvent event) {
            contexts.add(event.getApplicationContext());
        }

        @Bean
        FilterRegistrationBean<?> rateLimitFilterBeforeAuthentication() {
            FilterRegistrationBean<?> registration =
                    new FilterRegistrationBean<>((request, response, chain) -> chain.doFilter(request, response));
            registration.setEnabled(false);
            registration.setOrder(77);
            return registration;
        }
    }
}
