package io.ratelimit.actuate;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.audit.AuditEventRepository;
import org.springframework.boot.actuate.audit.InMemoryAuditEventRepository;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;

/** The audit events of changes through the actuator. */
@ExtendWith(OutputCaptureExtension.class)
class AuditTests {

    private static final String FORGER = "ops\n INFO forged\u2028 line";

    private static final String YAML = """
            management:
              endpoints.web.exposure.include: ratelimits
              endpoint.ratelimits: { access: unrestricted, show-values: %s }
            ratelimit:
              exclude-paths: /actuator/**
              policies:
                named: { key: "query:name", rate: 2/1d, tiers: { pro: { rate: 4/1d } }, tier: "query:plan" }
                all: { rate: 6/1m }
            """;

    private static final String ADMIN = "Authorization: Basic YWRtaW46YWRtaW4="; // admin:admin

    @Test
    void eachChangeIsAnEventWithTheUserAndBothLimits() {
        try (TestServer server = server("never", Repository.class)) {
            post(server, "/named", "{\"rate\": \"3/1d\", \"tier\": \"pro\"}", 200);
            post(server, "/all", "{\"capacity\": 9}", 200);
            post(server, "/all", "{\"capacity\": -9}", 400);
            server.http().get("/actuator/ratelimits/all", ADMIN);

            List<AuditEvent> events = events(server, "RATE_LIMIT_CHANGED");
            assertThat(events).extracting(AuditEvent::getPrincipal).containsExactly("admin", "admin");
            assertThat(events)
                    .extracting(AuditEvent::getData)
                    .containsExactly(
                            Map.of(
                                    "policy",
                                    "named",
                                    "tier",
                                    "pro",
                                    "before",
                                    "4/1d, capacity 4",
                                    "now",
                                    "3/1d, capacity 3",
                                    "for",
                                    "instance"),
                            Map.of(
                                    "policy",
                                    "all",
                                    "before",
                                    "6/1m, capacity 6",
                                    "now",
                                    "6/1m, capacity 9",
                                    "for",
                                    "instance"));
            delete(server, "/all/change");
            assertThat(events(server, "RATE_LIMIT_CHANGED").get(2).getData())
                    .containsEntry("now", "6/1m, capacity 6")
                    .containsEntry("for", "instance");
        }
    }

    @Test
    void aResetIsAnEventWithTheKeyAsTheUserSeesIt() {
        try (TestServer server = server("never", Repository.class)) {
            delete(server, "/named?key=alice");
            delete(server, "/all");

            List<AuditEvent> events = events(server, "RATE_LIMIT_RESET");
            assertThat(events).extracting(AuditEvent::getPrincipal).containsExactly("admin", "admin");
            assertThat(events.get(0).getData())
                    .containsOnlyKeys("policy", "key")
                    .containsEntry("policy", "named");
            assertThat(events.get(0).getData().get("key").toString()).matches("[0-9a-f]{16}");
            assertThat(events.get(1).getData()).isEqualTo(Map.of("policy", "all"));
        }
        try (TestServer server = server("always", Repository.class)) {
            delete(server, "/named?key=alice&tier=pro");
            assertThat(events(server, "RATE_LIMIT_RESET").get(0).getData())
                    .isEqualTo(Map.of("policy", "named", "tier", "pro", "key", List.of("alice")));
        }
    }

    /** Also without a repository of audit events: whoever looks at night has the log. */
    @Test
    void theLogNamesTheUserInOneLine(CapturedOutput output) {
        try (TestServer server = server("never")) {
            post(server, "/all", "{\"capacity\": 9}", 200);
            delete(server, "/all");
            server.http()
                    .request(
                            "DELETE",
                            "/actuator/ratelimits/named?key=alice",
                            "Authorization: Basic "
                                    + Base64.getEncoder().encodeToString((FORGER + ":forger").getBytes(UTF_8)));
        }
        assertThat(output)
                .contains("Throttle policy 'all': the limit was changed through the actuator by admin")
                .contains("Throttle policy 'all': a bucket was reset through the actuator by admin")
                .contains("Throttle policy 'named': a bucket was reset through the actuator by ops? INFO forged? line");
    }

    @Test
    void withoutARepositoryNoEventIsPublished() {
        try (TestServer server = server("never")) {
            post(server, "/all", "{\"capacity\": 9}", 200);
            delete(server, "/all");
            assertThat(server.bean(Users.class).published).isZero();
        }
    }

    private static List<AuditEvent> events(TestServer server, String type) {
        return server.bean(AuditEventRepository.class).find(null, null, type);
    }

    private static void post(TestServer server, String path, String json, int status) {
        Response response = server.http()
                .send("POST /actuator/ratelimits" + path + " HTTP/1.1\r\nHost: localhost\r\n" + ADMIN
                        + "\r\nContent-Type: application/json\r\nContent-Length: " + json.length() + "\r\n\r\n" + json);
        assertThat(response.status()).as(response.body()).isEqualTo(status);
    }

    private static void delete(TestServer server, String path) {
        Response response = server.http().request("DELETE", "/actuator/ratelimits" + path, ADMIN);
        assertThat(response.status()).as(response.body()).isEqualTo(200);
    }

    private static TestServer server(String showValues, Class<?>... more) {
        Class<?>[] sources = new Class<?>[more.length + 1];
        sources[0] = Users.class;
        System.arraycopy(more, 0, sources, 1, more.length);
        return TestServer.secured(YAML.formatted(showValues), sources).start();
    }

    static class Users {

        private int published;

        @EventListener
        void audit(AuditApplicationEvent event) {
            published += event.getAuditEvent().getType().startsWith("RATE_LIMIT") ? 1 : 0;
        }

        @Bean
        SecurityFilterChain security(HttpSecurity http) throws Exception {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .httpBasic(basic -> {})
                    .csrf(csrf -> csrf.disable())
                    .build();
        }

        /** Only looks users up: the manager would replace their passwords by bcrypt, at 70 ms a request. */
        @Bean
        UserDetailsService users() {
            return new InMemoryUserDetailsManager(
                    User.withUsername("admin").password("{noop}admin").build(),
                    User.withUsername(FORGER).password("{noop}forger").build())::loadUserByUsername;
        }
    }

    static class Repository {

        @Bean
        AuditEventRepository repository() {
            return new InMemoryAuditEventRepository();
        }
    }
}
