package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.Filter;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.UrlHandlerFilter;
import org.springframework.web.servlet.config.annotation.PathMatchConfigurer;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.util.pattern.PathPatternParser;

/** Applications that read paths more leniently than Spring MVC does by default. */
class PathVariantTests {

    private static final String YAML = """
            ratelimit:
              policies:
                login: { rate: 2/1h, paths: /login }
                slash: { rate: 2/1h, paths: /login/ }
                endpoint: { key: endpoint, rate: 100/1h }
                others: { rate: 100/1h, exclude-paths: /free }
            """;

    @Test
    void aTrailingSlashIsNoBypassBeforeTheFilterThatTrimsIt() {
        try (TestServer server =
                TestServer.open(YAML, Api.class, TrimmingLast.class).start()) {
            aTrailingSlashIsNoWayRound(server);
        }
    }

    @Test
    void norBehindIt() {
        try (TestServer server =
                TestServer.open(YAML, Api.class, TrimmingFirst.class).start()) {
            aTrailingSlashIsNoWayRound(server);
        }
    }

    private static void aTrailingSlashIsNoWayRound(TestServer server) {
        for (String alias : List.of("/login/", "/%6cogin/", "/login;a=b/")) {
            server.refill();
            assertThat(server.http().get("/login").body()).as(alias).isEqualTo("login");
            assertThat(server.http().get(alias).body()).as(alias).isEqualTo("login");
            assertThat(server.available("endpoint", "GET /login")).as(alias).isEqualTo(98);
            assertThat(server.http().get(alias).body()).as(alias).contains("[\"login\",\"slash\"]");
            assertThat(server.http().get("/login").status()).as(alias).isEqualTo(429);
        }
    }

    @Test
    void policiesIgnoreCaseIfControllersDo() {
        try (TestServer server = TestServer.open(YAML, Api.class, AnyCase.class).start()) {
            for (String alias : List.of("/LOGIN", "/Login", "/%4cogin", "/LogIn;a=b")) {
                server.refill();
                assertThat(server.http().get("/login").body()).as(alias).isEqualTo("login");
                assertThat(server.http().get(alias).body()).as(alias).isEqualTo("login");
                assertThat(server.available("endpoint", "GET /login")).as(alias).isEqualTo(98);
                assertThat(server.http().get(alias).status()).as(alias).isEqualTo(429);
            }
            server.refill();
            server.http().get("/FREE");
            assertThat(server.available("others")).as("excluded").isEqualTo(100);
        }
    }

    @RestController
    static class Api {

        @GetMapping("/login")
        String login() {
            return "login";
        }

        @GetMapping("/free")
        String free() {
            return "free";
        }
    }

    static class TrimmingFirst {

        @Bean
        FilterRegistrationBean<Filter> trimming() {
            return trimming(Ordered.HIGHEST_PRECEDENCE);
        }

        static FilterRegistrationBean<Filter> trimming(int order) {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>(
                    UrlHandlerFilter.trailingSlashHandler("/**").wrapRequest().build());
            registration.setOrder(order);
            return registration;
        }
    }

    static class TrimmingLast {

        @Bean
        FilterRegistrationBean<Filter> trimming() {
            return TrimmingFirst.trimming(Ordered.LOWEST_PRECEDENCE);
        }
    }

    static class AnyCase implements WebMvcConfigurer {

        @Override
        public void configurePathMatch(PathMatchConfigurer configurer) {
            PathPatternParser parser = new PathPatternParser();
            parser.setCaseSensitive(false);
            configurer.setPatternParser(parser);
        }
    }
}
