package io.ratelimit.actuate;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import com.jayway.jsonpath.JsonPath;
import io.ratelimit.web.servlet.RawHttp;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.TestServer;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Access to the actuator endpoint, and its path. */
@Tag("slow")
class RateLimitsEndpointAccessTests {

    private static final String POLICIES = """
            ratelimit.policies:
              named: { key: [query:name, user], rate: 2/1d, paths: /named, on-missing-key: shared }
              all: { rate: 9/1d, paths: /named }
            """;
    private static final String EXPOSED = POLICIES + "management.endpoints.web.exposure.include: ratelimits\n";

    private static Response post(RawHttp http, String path, String... headers) {
        String json = "{\"rate\":\"1/1m\"}";
        String all = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: " + json.length() + "\r\n"
                + Stream.of(headers).map(header -> header + "\r\n").collect(Collectors.joining());
        return http.send("POST " + path + " HTTP/1.1\r\n" + all + "\r\n" + json);
    }

    private static List<Map<String, Object>> denied(Response answer) {
        assertThat(answer.status()).isEqualTo(200);
        return JsonPath.read(answer.body(), "$.deniedMost");
    }

    private static void deny(RawHttp http, String target, String... headers) {
        for (int i = 0; i < 3; i++) {
            http.get(target, headers);
        }
    }

    @Test
    void anEndpointThatIsNotExposedHasNoBeans() {
        try (TestServer server = TestServer.open(POLICIES, Api.class).start()) {
            assertThat(server.http().get("/actuator/ratelimits").status()).isEqualTo(404);
            assertThat(server.beans(RateLimitsEndpoint.class)).isEmpty();
            assertThat(server.beans(DeniedKeys.class)).isEmpty();
        }
    }

    @Test
    void theDefaultAccessIsReadOnly() {
        try (TestServer server = TestServer.open(EXPOSED, Api.class).start()) {
            RawHttp http = server.http();
            assertThat(http.get("/actuator/ratelimits").status()).isEqualTo(200);
            assertThat(http.get("/actuator/ratelimits/all").status()).isEqualTo(200);
            assertThat(post(http, "/actuator/ratelimits/all").status()).isEqualTo(405);
            assertThat(http.request("DELETE", "/actuator/ratelimits/all/change").body())
                    .contains("limits are read-only here");
            Response rejected = http.request("DELETE", "/actuator/ratelimits/all");
            assertThat(rejected.status()).isEqualTo(405);
            assertThat(rejected.header("Allow")).isEqualTo("GET");
            assertThat(rejected.header("Content-Type")).isEqualTo("application/problem+json");
            assertThat(rejected.body())
                    .startsWith("{\"title\":\"Method Not Allowed\",\"status\":405,")
                    .endsWith("set 'management.endpoint.ratelimits.access: unrestricted'\"}");
            Response other = http.request("PUT", "/actuator/ratelimits/all");
            assertThat(other.status()).isEqualTo(405);
            assertThat(other.body()).doesNotContain("unrestricted");
        }
    }

    @Test
    void thePropertiesForAccessApplyAsForOtherEndpoints() {
        String none = "management.endpoint.ratelimits.access: none\n";
        try (TestServer server = TestServer.open(EXPOSED + none, Api.class).start()) {
            assertThat(server.http().get("/actuator/ratelimits").status()).isEqualTo(404);
        }
        String capped = """
                management.endpoint.ratelimits.access: unrestricted
                management.endpoints.access.max-permitted: read-only
                """;
        try (TestServer server = TestServer.open(EXPOSED + capped, Api.class).start()) {
            assertThat(server.http().get("/actuator/ratelimits").status()).isEqualTo(200);
            assertThat(post(server.http(), "/actuator/ratelimits/all").status()).isEqualTo(405);
        }
    }

    @Test
    void keysAreShownIfConfigured() {
        String always = "management.endpoint.ratelimits.show-values: always\n";
        try (TestServer server = TestServer.open(EXPOSED + always, Api.class).start()) {
            RawHttp http = server.http();
            deny(http, "/named?name=m%C3%A4x");

            Map<String, Object> most =
                    denied(http.get("/actuator/ratelimits/named")).get(0);

            assertThat(most).containsEntry("denied", 1);
            assertThat(most.get("key"))
                    .asInstanceOf(InstanceOfAssertFactories.MAP)
                    .containsEntry("parts", List.of("mäx", ""))
                    .containsEntry("missing", List.of("user"))
                    .containsKey("hash");
            Response bucket = http.get("/actuator/ratelimits/named?key=M%C3%84X&key=bob");
            assertThat(JsonPath.<List<String>>read(bucket.body(), "$.key.parts"))
                    .containsExactly("mäx", "bob");
        }
    }

    @Test
    void anUnpairedSurrogateInAKeyDoesNotHideTheOtherKeys() {
        String yaml = EXPOSED + """
                management.endpoint.ratelimits.show-values: always
                ratelimit.policies.cut: { key: ["expression:query('name').substring(0, 1)"], rate: 1/1d, paths: /named }
                """;
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            deny(server.http(), "/named?name=%F0%9F%98%80");

            assertThat(denied(server.http().get("/actuator/ratelimits/cut"))
                            .get(0)
                            .get("key"))
                    .asInstanceOf(InstanceOfAssertFactories.MAP)
                    .containsEntry("parts", List.of("?"));
            assertThat(server.http().get("/actuator/ratelimits").status()).isEqualTo(200);
        }
    }

    @Test
    void whenAuthorizedUsersWithTheRoleSeeKeys() {
        String yaml = EXPOSED + """
                management.endpoint.ratelimits: { show-values: when-authorized, roles: AUDIT }
                """;
        try (TestServer server =
                TestServer.secured(yaml, Users.class, Api.class).start()) {
            RawHttp http = server.http();
            deny(http, "/named?name=max", basic("user"));
            String target = "/actuator/ratelimits/named";

            assertThat(http.get(target).status()).isEqualTo(401);
            assertThat(http.get(target, basic("user")).status()).isEqualTo(403);
            assertThat(http.get(target, basic("admin")).body())
                    .doesNotContain("max")
                    .contains("hash");
            assertThat(denied(http.get(target, basic("audit"))).get(0).get("key"))
                    .asInstanceOf(InstanceOfAssertFactories.MAP)
                    .containsEntry("parts", List.of("max", "user"));
        }
    }

    @Test
    void allAuthenticatedUsersAreAuthorizedWithoutRoles() {
        String yaml = EXPOSED + "management.endpoint.ratelimits.show-values: when-authorized\n";
        try (TestServer server =
                TestServer.secured(yaml, Users.class, Api.class).start()) {
            deny(server.http(), "/named?name=max", basic("user"));
            assertThat(server.http()
                            .get("/actuator/ratelimits/named", basic("admin"))
                            .body())
                    .contains("max");
        }
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            deny(server.http(), "/named?name=max");
            assertThat(server.http().get("/actuator/ratelimits/named").body()).doesNotContain("max");
        }
    }

    /** Tests the advice of the documentation. */
    @Test
    void changesPassCsrfProtectionIfTheEndpointIsExempt() {
        String yaml = EXPOSED + """
                management:
                  endpoints.web.base-path: /manage
                  endpoint.ratelimits.access: unrestricted
                """;
        try (TestServer server =
                TestServer.secured(yaml, CsrfExempt.class, Api.class).start()) {
            RawHttp http = server.http();
            assertThat(post(http, "/manage/ratelimits/all", basic("admin")).status())
                    .isEqualTo(200);
            assertThat(http.request("DELETE", "/manage/ratelimits/all", basic("admin"))
                            .status())
                    .isEqualTo(200);
            assertThat(post(http, "/manage/ratelimits/all", basic("user")).status())
                    .isEqualTo(403);
            assertThat(post(http, "/named", basic("admin")).status()).isEqualTo(401);
        }
    }

    @Test
    void theEndpointFollowsThePortAndThePathsOfTheManagementServer() {
        String yaml = EXPOSED + """
                server.servlet.context-path: /shop
                management:
                  server: { port: 0, base-path: /ops }
                  endpoints.web: { base-path: /manage, path-mapping.ratelimits: limits }
                  endpoint.ratelimits.access: unrestricted
                """;
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            int port = server.bean(Environment.class).getRequiredProperty("local.management.port", int.class);
            RawHttp http = new RawHttp(port, "127.0.0.1");
            String endpoint = "/ops/manage/limits";

            assertThat(http.get(endpoint).status()).isEqualTo(200);
            assertThat(post(http, endpoint + "/all").body()).contains("\"now\":{\"rate\":\"1/1m\"");
            assertThat(http.get(endpoint + "/nobody").body()).contains("no policy has this name");
            assertThat(post(http, endpoint + "/all?rate=1/1s").body()).contains("in the body, as JSON");
            assertThat(http.get(endpoint + "/named?key=a%2Fb&key=c").status()).isEqualTo(200);
            assertThat(server.http().get("/shop/actuator/ratelimits").status()).isEqualTo(404);
        }
    }

    @Test
    void aRejectedChangeHasAReasonOnTheManagementPortToo() {
        String yaml = EXPOSED + """
                management:
                  server: { port: 0, base-path: /ops }
                  endpoints.web: { base-path: /manage, path-mapping.ratelimits: limits }
                """;
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            int port = server.bean(Environment.class).getRequiredProperty("local.management.port", int.class);
            Response rejected = post(new RawHttp(port, "127.0.0.1"), "/ops/manage/limits/all");
            assertThat(rejected.status()).isEqualTo(405);
            assertThat(rejected.body()).contains("management.endpoint.ratelimits.access: unrestricted");
        }
    }

    @RestController
    static class Api {

        @GetMapping("/named")
        String get() {
            return "";
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class CsrfExempt {

        @Bean
        SecurityFilterChain security(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.requestMatchers(EndpointRequest.toAnyEndpoint())
                            .hasRole("ADMIN")
                            .anyRequest()
                            .authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .csrf(csrf -> csrf.ignoringRequestMatchers(EndpointRequest.to("ratelimits")))
                    .build();
        }

        @Bean
        UserDetailsService users() {
            return new Users().users();
        }
    }

    /** A user, an administrator, and an administrator with the role for keys. */
    @Configuration(proxyBeanMethods = false)
    static class Users {

        @Bean
        SecurityFilterChain security(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.requestMatchers("/actuator/**")
                            .hasRole("ADMIN")
                            .anyRequest()
                            .authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .csrf(AbstractHttpConfigurer::disable)
                    .build();
        }

        @Bean
        UserDetailsService users() {
            Map<String, String[]> roles = Map.of(
                    "user", new String[] {"USER"},
                    "admin", new String[] {"ADMIN"},
                    "audit", new String[] {"ADMIN", "AUDIT"});
            return name -> User.withUsername(name)
                    .password("{noop}" + name)
                    .roles(roles.get(name))
                    .build();
        }
    }
}
