package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.security.Principal;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContextException;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Applications that authenticate in their own filter. */
class AfterAuthenticationOrderTests {

    private static final String YAML = """
            ratelimit:
              %s
              policies:
                user: { key: user, on-missing-key: deny, rate: 1/1h }
                all: { rate: 100/1h }
                address: { key: ip, rate: 100/1h }
            """;

    @Test
    void theSecondFilterStandsAtTheConfiguredOrder() {
        String order = "filter.after-authentication-order: 11";
        try (TestServer server =
                TestServer.open(YAML.formatted(order), OwnAuthentication.class).start()) {
            assertThat(server.http().get("/", "X-User: alice").status()).isEqualTo(200);
            assertThat(server.http().get("/", "X-User: alice").status()).isEqualTo(429);
            assertThat(server.http().get("/", "X-User: bob").status()).isEqualTo(200);
        }
    }

    @Test
    void sharedBucketsAreChargedBehindTheApplicationsOwnAuthentication() {
        String order = "filter.after-authentication-order: 11";
        try (TestServer server =
                TestServer.open(YAML.formatted(order), OwnAuthentication.class).start()) {
            assertThat(server.http().get("/").status()).isEqualTo(401);
            assertThat(server.available("all")).isEqualTo(100);
            assertThat(server.available("address", "127.0.0.1")).isEqualTo(99);
        }
    }

    @Test
    void theFilterRunsBeforeAnOwnAuthenticationByDefault() {
        try (TestServer server = TestServer.open(YAML.formatted("mode: enforce"), OwnAuthentication.class)
                .start()) {
            assertThat(server.http().get("/", "X-User: alice").status()).isEqualTo(403);
            assertThat(server.http().get("/").status()).as("by 'user', at once").isEqualTo(403);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {-101, -102, Integer.MIN_VALUE})
    void notBeforeThePlaceOfSpringSecurity(int order) {
        assertThatExceptionOfType(ApplicationContextException.class)
                .isThrownBy(() -> TestServer.open(YAML.formatted("filter.after-authentication-order: " + order))
                        .start())
                .havingRootCause()
                .isInstanceOf(InvalidConfigurationPropertyValueException.class)
                .withMessageContaining("ratelimit.filter.after-authentication-order")
                .satisfies(
                        failure -> assertThat(((InvalidConfigurationPropertyValueException) failure).getReason())
                                .isEqualTo(
                                        "The order must be greater than -101, the last order before Spring Security, but was "
                                                + order
                                                + ": policies after authentication would run before it. Set it to -100 or more."));
    }

    @Test
    void notAtThePlaceOfSpringSecurityWhichWouldRunLater() {
        String order = YAML.formatted("filter.after-authentication-order: -100");
        assertThatExceptionOfType(ApplicationContextException.class)
                .isThrownBy(() -> TestServer.secured(order, BasicSecurity.class).start())
                .havingRootCause()
                .satisfies(failure -> assertThat(((InvalidConfigurationPropertyValueException) failure).getReason())
                        .startsWith("The order must be greater than -100, the order of Spring Security, but was -100:")
                        .endsWith("Set it to -99 or more."));
    }

    /** Returns a filter that answers 401 where the authentication returns null. */
    static FilterRegistrationBean<Filter> filter(UnaryOperator<HttpServletRequest> authentication) {
        FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
            HttpServletRequest authenticated = authentication.apply((HttpServletRequest) request);
            if (authenticated == null) {
                ((HttpServletResponse) response).setStatus(401);
            } else {
                chain.doFilter(authenticated, response);
            }
        });
        registration.setOrder(10);
        return registration;
    }

    @RestController
    static class OwnAuthentication {

        @GetMapping("/")
        String hello(Principal user) {
            return user.getName();
        }

        @Bean
        FilterRegistrationBean<Filter> ownAuthentication() {
            return filter(OwnAuthentication::authenticated);
        }

        private static HttpServletRequest authenticated(HttpServletRequest request) {
            String user = request.getHeader("X-User");
            return user == null
                    ? null
                    : new HttpServletRequestWrapper(request) {
                        @Override
                        public Principal getUserPrincipal() {
                            return () -> user;
                        }
                    };
        }
    }
}
