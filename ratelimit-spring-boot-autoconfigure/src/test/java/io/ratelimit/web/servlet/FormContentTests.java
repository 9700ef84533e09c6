package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Connection;
import io.ratelimit.web.servlet.RawHttp.Response;
import io.ratelimit.web.servlet.rejection.RejectionHandler;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.context.annotation.Bean;
import org.springframework.context.i18n.LocaleContextHolder;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.ModelAndView;

/** Forms of PUT, PATCH and DELETE, whose body Spring Boot's {@code FormContentFilter} reads before Spring Security. */
class FormContentTests {

    private static final String FORM = "Content-Type: application/x-www-form-urlencoded";
    private static final String YAML = """
            spring.security.filter.order: %d
            ratelimit.policies.per-ip: { key: ip, rate: 1/1h }
            """;

    @ParameterizedTest
    @ValueSource(ints = {-100, 50, -20_000})
    void theBodyOfARejectedFormIsNotRead(int securityOrder) {
        try (TestServer server = TestServer.secured(YAML.formatted(securityOrder), Api.class, BasicSecurity.class)
                .start()) {
            assertThat(server.http().get("/form").status()).isEqualTo(401);
            for (String method : List.of("PUT", "PATCH", "DELETE")) {
                assertThat(answerWithoutBody(server, method).status())
                        .as(method)
                        .isEqualTo(429);
            }
        }
    }

    /** If the server read the body, it would wait for 8 MB that never arrive. */
    private static Response answerWithoutBody(TestServer server, String method) {
        try (Connection connection = server.http().open()) {
            return connection
                    .write(RawHttp.text(method, "/form", FORM, "Content-Length: 8000000"))
                    .read();
        }
    }

    @Test
    void theMethodThatAFormNamesCounts() {
        try (TestServer server = TestServer.open("""
                spring.mvc.hiddenmethod.filter.enabled: true
                ratelimit.policies:
                  put: { key: ip, rate: 1/1h, methods: PUT }
                  patch: { key: ip, rate: 1/1h, methods: PATCH }
                  delete: { key: ip, rate: 1/1h, methods: DELETE }
                """, Api.class).start()) {
            for (String method : List.of("PUT", "PATCH", "DELETE")) {
                String body = "_method=" + method;
                for (int status : List.of(method.equals("PUT") ? 200 : 405, 429)) {
                    try (Connection connection = server.http().open()) {
                        connection.write(
                                RawHttp.text("POST", "/form", FORM, "Content-Length: " + body.length()) + body);
                        assertThat(connection.read().status()).as(method).isEqualTo(status);
                    }
                }
                assertThat(server.http().request("POST", "/form").status())
                        .as(method)
                        .isEqualTo(200);
            }
        }
    }

    @Test
    void aRejectionHandlerFindsTheRequestAndItsLocale() {
        String yaml = "ratelimit.policies.per-ip: { key: ip, rate: 1/1h }";
        try (TestServer server =
                TestServer.open(yaml, Api.class, LocalizedRejections.class).start()) {
            assertThat(server.http().request("PUT", "/form").status()).isEqualTo(200);
            Response refused = server.http().request("PUT", "/form", "Accept-Language: fr");
            assertThat(refused.status()).isEqualTo(429);
            assertThat(refused.header("X-Locale")).isEqualTo("fr");
            assertThat(refused.header("X-Bound")).isEqualTo("/form");
        }
    }

    @Test
    void aPageAndCorsConfigurationFindTheRequestAndItsLocale() {
        String yaml = "ratelimit.policies.per-ip: { key: ip, rate: 1/1h }";
        try (TestServer server =
                TestServer.open(yaml, Api.class, BoundApplication.class).start()) {
            assertThat(server.http().request("PUT", "/form").status()).isEqualTo(200);
            String anythingRather = "*/*, text/plain;q=0.1, application/json;q=0.1, application/problem+json;q=0.1";
            for (String accept : List.of("TEXT/html", "text/*, text/plain;q=0.5", anythingRather)) {
                assertThat(server.http()
                                .get("/form", "Accept: " + accept, "Accept-Language: fr")
                                .body())
                        .as(accept)
                        .isEqualTo("/form fr");
            }
            assertThat(server.http().get("/else", "Origin: http://page").header("Access-Control-Allow-Origin"))
                    .isEqualTo("http://page");
        }
    }

    @RestController
    static class Api {

        @PutMapping("/form")
        String put(@RequestParam(required = false) String name) {
            return "" + name;
        }

        @PostMapping("/form")
        String post() {
            return "";
        }
    }

    static class LocalizedRejections {

        @Bean
        RejectionHandler localized() {
            return (request, response, decision) -> {
                Locale locale = LocaleContextHolder.getLocale();
                response.setHeader("X-Locale", locale.getLanguage());
                var bound = (ServletRequestAttributes) RequestContextHolder.currentRequestAttributes();
                response.setHeader("X-Bound", bound.getRequest().getRequestURI());
                response.setStatus(429);
            };
        }
    }

    static class BoundApplication {

        @Bean
        ErrorViewResolver page() {
            return (request, status, model) -> new ModelAndView((values, rendered, response) ->
                    response.getWriter().print(bound() + " " + LocaleContextHolder.getLocale()));
        }

        @Bean
        CorsConfigurationSource corsConfigurationSource() {
            return request -> {
                CorsConfiguration configuration = new CorsConfiguration();
                configuration.addAllowedOrigin(bound().equals("/else") ? "http://page" : "http://other");
                return configuration;
            };
        }

        private static String bound() {
            var bound = (ServletRequestAttributes) RequestContextHolder.currentRequestAttributes();
            return bound.getRequest().getRequestURI();
        }
    }
}
