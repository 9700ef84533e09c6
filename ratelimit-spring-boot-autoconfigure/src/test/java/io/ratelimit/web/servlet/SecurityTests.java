package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContextException;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.access.intercept.AuthorizationFilter;
import org.springframework.security.web.authentication.www.BasicAuthenticationFilter;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;

/** Before and after Spring Security, and through it. */
@Tag("slow")
class SecurityTests {

    private static final String YAML = """
            spring.security.filter.order: %d
            ratelimit:
              exclude-paths: /excluded
              policies:
                guard: { key: ip, rate: 10/1h, capacity: 10, phase: before-authentication }
                address: { key: [ip, endpoint], rate: 100/1h }
                shared: { key: endpoint, rate: 100/1h }
                open: { key: ip, rate: 1/1h, paths: /open }
                user: { key: user, rate: 2/1h, exclude-paths: /open }
                written-late: { key: ip, rate: 100/1h, phase: after-authentication }
            """;

    @RegisterExtension
    static final TestServer server = with(-100);

    @ParameterizedTest
    @ValueSource(ints = {50, -2_000_000_000})
    void theFiltersStandOnBothSidesOfSpringSecurityAtAnyOrder(int order) {
        try (TestServer server = with(order).start()) {
            RawHttp http = server.http();
            assertThat(http.get("/hello").status()).isEqualTo(401);
            assertThat(http.get("/hello", basic("alice", "wrong")).status()).isEqualTo(401);
            assertThat(server.available("guard", "127.0.0.1")).isEqualTo(8);
            assertThat(server.available("address", "127.0.0.1", "GET /hello")).isEqualTo(98);
            assertThat(server.available("shared", "GET /hello"))
                    .as("not reached")
                    .isEqualTo(100);
            assertThat(server.available("written-late", "127.0.0.1"))
                    .as("not reached")
                    .isEqualTo(100);

            assertThat(http.get("/hello", basic("alice")).status()).isEqualTo(200);
            assertThat(http.get("/hello", basic("alice")).status()).isEqualTo(200);
            assertThat(http.get("/hello", basic("alice")).status()).isEqualTo(429);
            assertThat(server.available("user", "alice")).isZero();
            assertThat(http.get("/hello", basic("bob")).status())
                    .as("behind the same address")
                    .isEqualTo(200);
            assertThat(server.available("guard", "127.0.0.1"))
                    .as("keeps what it took from the refused")
                    .isEqualTo(4);
            assertThat(server.available("address", "127.0.0.1", "GET /hello"))
                    .as("gave back what it took from the refused")
                    .isEqualTo(95);
            assertThat(server.available("shared", "GET /hello")).isEqualTo(97);
            assertThat(server.available("written-late", "127.0.0.1")).isEqualTo(97);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {Integer.MIN_VALUE, Integer.MAX_VALUE})
    void anOrderThatLeavesNoRoomStopsTheStart(int order) {
        assertThatExceptionOfType(ApplicationContextException.class)
                .isThrownBy(() -> with(order).start())
                .havingRootCause()
                .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                .withMessageContaining("spring.security.filter.order")
                .withMessageContaining(Integer.toString(order));
    }

    @Test
    void aDrainedAccountDoesNotBuyEndlessPasswordChecks() {
        int checks = 0;
        for (int i = 0; i < 30; i++) {
            Response response = server.http().get("/hello", basic("alice"));
            checks += response.body().contains("[\"guard\"]") ? 0 : 1;
        }
        assertThat(checks).isEqualTo(10);
    }

    @Test
    void anExcludedPathIsNotExcludedFromThePolicyThatGuardsTheLogin() {
        assertThat(server.http().get("/excluded").status()).isEqualTo(401);
        assertThat(server.available("guard", "127.0.0.1")).isEqualTo(9);
        assertThat(server.available("address", "127.0.0.1", "GET /excluded")).isEqualTo(100);
    }

    @Test
    void aRejectionStaysARejectionWhereEverythingNeedsALogin() {
        server.http().get("/open");
        Response early = server.http().get("/open");
        assertThat(early.status()).isEqualTo(429);
        assertThat(early.body()).contains("[\"open\"]");
        assertThat(early.names()).doesNotContain("Set-Cookie", "WWW-Authenticate", "Location");

        server.http().get("/hello", basic("alice"));
        server.http().get("/hello", basic("alice"));
        Response late = server.http().get("/hello", basic("alice"));
        assertThat(late.status()).isEqualTo(429);
        assertThat(late.body()).contains("[\"user\"]");
        assertThat(late.names()).doesNotContain("Set-Cookie", "WWW-Authenticate", "Location");
        assertThat(late.all("Cache-Control")).containsExactly("no-store");
    }

    @Test
    void requestsThatTheFirewallRejectsAreCharged() {
        for (String target : List.of("/hello;a=b", "//hello", "/x/../hello", "/hello%25", "/./hello")) {
            server.refill();
            assertThat(server.http().get(target, basic("alice")).status())
                    .as("%s: 400, whose error page needs a login", target)
                    .isEqualTo(401);
            assertThat(server.available("guard", "127.0.0.1")).as(target).isEqualTo(9);
        }
    }

    @Test
    void filtersThatAreAlsoInTheChainOfSpringSecurityChargeOnce() {
        try (TestServer server = TestServer.secured(YAML.formatted(-100), Api.class, InTheChain.class)
                .start()) {
            assertThat(server.http().get("/hello", basic("alice")).status()).isEqualTo(200);
            assertThat(server.available("guard", "127.0.0.1")).isEqualTo(9);
            assertThat(server.available("address", "127.0.0.1", "GET /hello")).isEqualTo(99);
            assertThat(server.available("shared", "GET /hello")).isEqualTo(99);
            assertThat(server.available("user", "alice")).isEqualTo(1);
            assertThat(server.available("written-late", "127.0.0.1")).isEqualTo(99);

            server.http().get("/hello", basic("alice"));
            String[] page = {basic("alice"), "Origin: http://page.example"};
            Response refusal = server.http().get("/hello", page);
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.all("Access-Control-Allow-Origin"))
                    .as("once, though Spring Security had set it already")
                    .containsExactly("http://page.example");
            assertThat(server.available("guard", "127.0.0.1")).isEqualTo(7);
            assertThat(server.available("address", "127.0.0.1", "GET /hello")).isEqualTo(98);
            assertThat(server.available("shared", "GET /hello")).isEqualTo(98);

            Response early = server.http().from("127.0.0.7").get("/open", page[1]);
            assertThat(early.status()).isEqualTo(401);
            early = server.http().from("127.0.0.7").get("/open", page[1]);
            assertThat(early.status()).isEqualTo(429);
            assertThat(early.all("Access-Control-Allow-Origin"))
                    .as("before Spring Security could")
                    .containsExactly("http://page.example");
        }
    }

    private static TestServer with(int order) {
        return TestServer.secured(YAML.formatted(order), Api.class, BasicSecurity.class);
    }

    @RestController
    static class Api {

        @GetMapping({"/hello", "/open", "/excluded"})
        String hello() {
            return "hello";
        }
    }

    static class InTheChain {

        @Bean
        SecurityFilterChain security(
                HttpSecurity http,
                FilterRegistrationBean<RateLimitFilter> rateLimitFilterBeforeAuthentication,
                FilterRegistrationBean<RateLimitFilter> rateLimitFilterAfterAuthentication) {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .cors(Customizer.withDefaults())
                    .csrf(AbstractHttpConfigurer::disable)
                    .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.ALWAYS))
                    .addFilterBefore(rateLimitFilterBeforeAuthentication.getFilter(), BasicAuthenticationFilter.class)
                    .addFilterAfter(rateLimitFilterAfterAuthentication.getFilter(), AuthorizationFilter.class)
                    .build();
        }

        @Bean
        CorsConfigurationSource corsConfigurationSource() {
            CorsConfiguration configuration = new CorsConfiguration();
            configuration.setAllowedOrigins(List.of("http://page.example"));
            return request -> configuration;
        }

        @Bean
        UserDetailsService users() {
            return name -> User.withUsername(name)
                    .password("{noop}" + name)
                    .roles("USER")
                    .build();
        }
    }
}
