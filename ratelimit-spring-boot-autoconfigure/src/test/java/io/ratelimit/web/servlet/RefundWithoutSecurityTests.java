package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.security.Principal;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** {@code refund-on: authenticated} where the application authenticates in a filter of its own. */
class RefundWithoutSecurityTests {

    private static final String YAML = """
            ratelimit:
              filter.after-authentication-order: 11
              policies:
                logins: { key: ip, rate: 100/1h, phase: before-authentication, refund-on: authenticated }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, OwnAuthentication.class);

    @ParameterizedTest
    @CsvSource({
        "principal, 200, 100",
        "remote-user, 200, 100",
        "nobody, 200, 99",
        "wrong, 401, 99",
    })
    void theUserOfTheServletRequestDecides(String user, int status, long left) {
        assertThat(server.http().get("/", "X-User: " + user).status()).isEqualTo(status);
        assertThat(server.available("logins", "127.0.0.1")).isEqualTo(left);
    }

    @RestController
    static class OwnAuthentication {

        @GetMapping("/")
        String hello() {
            return "hello";
        }

        @Bean
        FilterRegistrationBean<Filter> ownAuthentication() {
            return AfterAuthenticationOrderTests.filter(OwnAuthentication::authenticated);
        }

        private static HttpServletRequest authenticated(HttpServletRequest request) {
            String user = request.getHeader("X-User");
            return user.equals("wrong")
                    ? null
                    : new HttpServletRequestWrapper(request) {
                        @Override
                        public Principal getUserPrincipal() {
                            return user.equals("principal") ? () -> user : null;
                        }

                        @Override
                        public String getRemoteUser() {
                            return user.equals("nobody") ? null : user;
                        }
                    };
        }
    }
}
