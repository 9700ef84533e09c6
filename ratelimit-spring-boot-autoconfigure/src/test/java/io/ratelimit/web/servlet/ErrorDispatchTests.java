package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.UsernamePasswordAuthenticationFilter;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.GenericFilterBean;

/** A request that enters the application only as an error dispatch, since the container answered the request itself. */
class ErrorDispatchTests {

    private static final String YAML = """
            ratelimit:
              policies:
                guesses:
                  key: ip
                  rate: 5/1h
                  phase: before-authentication
                  condition: "header('X-API-Key') != null"
                  refund-on: authenticated
                shared: { rate: 100/1h }
                users: { key: user, rate: 3/1h, on-missing-key: skip, paths: "/**" }
                delayed: { key: "header:X-Slow", rate: 1/1h, phase: before-authentication, rejection-delay: 1s,
                  on-missing-key: skip }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, ApiKeys.class, Api.class);

    private final RawHttp http = server.http();

    @BeforeEach
    void noChecksYet() {
        ApiKeys.CHECKS.set(0);
    }

    @ParameterizedTest
    @CsvSource({"GET, /WEB-INF/x, 404", "GET, /META-INF/x, 404", "TRACE, /hello, 405"})
    void aCheckOfCredentialsIsPaid(String method, String target, int status) {
        for (int i = 0; i < 40; i++) {
            Response response = http.request(method, target, "X-API-Key: guess" + i);
            assertThat(response.status()).isEqualTo(i < 5 ? status : 429);
            if (i >= 5) {
                assertThat(response.body()).contains("\"status\":429", "[\"guesses\"]");
                assertThat(response.header("Retry-After")).isEqualTo("720");
                assertThat(response.all("Content-Type")).containsExactly("application/problem+json");
            }
        }
        assertThat(ApiKeys.CHECKS).hasValue(5);
        assertThat(server.available("shared")).as("not of strangers").isEqualTo(100);
    }

    @Test
    void anAuthenticatedRequestGetsItsTokenBackAndIsChargedAfterAuthentication() {
        for (int i = 0; i < 3; i++) {
            assertThat(http.get("/WEB-INF/x", "X-API-Key: right").status()).isEqualTo(404);
        }
        assertThat(server.available("guesses", "127.0.0.1")).isEqualTo(5);
        assertThat(server.available("shared")).isEqualTo(97);
        Response refused = http.get("/WEB-INF/x", "X-API-Key: right");
        assertThat(refused.status()).isEqualTo(429);
        assertThat(refused.body()).contains("[\"users\"]");
        assertThat(server.available("shared")).isEqualTo(97);
    }

    @Test
    void theErrorPageOfARequestThatWasChargedIsFree() {
        assertThat(http.get("/send-error", "X-API-Key: right").status()).isEqualTo(409);
        assertThat(server.available("shared")).isEqualTo(99);
        assertThat(server.available("users", "right")).isEqualTo(2);
        assertThat(http.get("/send-error", "X-API-Key: wrong").status()).isEqualTo(409);
        assertThat(server.available("guesses", "127.0.0.1")).isEqualTo(4);
        assertThat(server.available("shared")).isEqualTo(98);
    }

    @Test
    void aRequestThatIsDeniedTakesNothingAfterAuthenticationByItsErrorPage() {
        assertThat(http.get("/closed").status()).isEqualTo(403);
        assertThat(server.available("shared")).isEqualTo(100);
    }

    @Test
    void aDelayedRejectionIsAnsweredAtOnce() {
        assertThat(http.get("/WEB-INF/x", "X-Slow: a").status()).isEqualTo(404);
        Response refused = http.get("/WEB-INF/x", "X-Slow: a");
        assertThat(refused.status()).isEqualTo(429);
        assertThat(refused.body()).contains("[\"delayed\"]");
    }

    @Test
    void theManagementPortChargesToo() {
        String yaml = YAML + "management.server.port: 0\n";
        try (TestServer own = TestServer.secured(yaml, ApiKeys.class, Api.class).start()) {
            int port = own.bean(org.springframework.core.env.Environment.class)
                    .getRequiredProperty("local.management.port", int.class);
            RawHttp management = new RawHttp(port, "127.0.0.1");
            int refused = 0;
            for (int i = 0; i < 40; i++) {
                refused += management.request("TRACE", "/x", "X-API-Key: guess").status() == 429 ? 1 : 0;
            }
            assertThat(refused).isEqualTo(35);
            assertThat(ApiKeys.CHECKS).hasValue(5);
        }
    }

    @RestController
    static class Api {

        @GetMapping("/hello")
        String hello() {
            return "hello";
        }

        @GetMapping("/send-error")
        void error(HttpServletResponse response) throws IOException {
            response.sendError(409);
        }
    }

    /** Authentication by a filter that runs in each dispatch; the container may show all its error pages. */
    @Configuration(proxyBeanMethods = false)
    static class ApiKeys extends BasicSecurity {

        static final AtomicInteger CHECKS = new AtomicInteger();

        @Bean
        @Override
        public SecurityFilterChain security(HttpSecurity http) {
            return http.authorizeHttpRequests(
                            requests -> requests.dispatcherTypeMatchers(jakarta.servlet.DispatcherType.ERROR)
                                    .permitAll()
                                    .requestMatchers("/closed")
                                    .denyAll()
                                    .anyRequest()
                                    .permitAll())
                    .csrf(AbstractHttpConfigurer::disable)
                    .addFilterBefore(new ApiKeyFilter(), UsernamePasswordAuthenticationFilter.class)
                    .build();
        }
    }

    private static final class ApiKeyFilter extends GenericFilterBean {

        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            String key = ((HttpServletRequest) request).getHeader("X-API-Key");
            if (key != null) {
                ApiKeys.CHECKS.incrementAndGet();
                if (key.equals("right")) {
                    SecurityContextHolder.setContext(
                            new SecurityContextImpl(UsernamePasswordAuthenticationToken.authenticated(
                                    key, null, AuthorityUtils.NO_AUTHORITIES)));
                }
            }
            chain.doFilter(request, response);
        }
    }
}
