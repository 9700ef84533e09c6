package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimitExempt;
import jakarta.servlet.Filter;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
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
            for (String alias : List.of("/LOGIN", "/Login", "/%4cogin", "/LogIn;a=b", "/log%C4%B1n", "/LOG%C4%B0N")) {
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

    /** A long s (U+017F) equals an s, a dotless i (U+0131) an i, and the Kelvin sign (U+212A) a k. */
    @Test
    void lettersThatAreEqualOnlyInUpperCaseAreOneEndpoint() {
        try (TestServer server =
                TestServer.open(LETTERS, Letters.class, AnyCase.class).start()) {
            for (String alias : List.of("/free/SECRET", "/free/%C5%BFecret", "/FREE/%C5%BFecret")) {
                server.refill();
                assertThat(server.http().get("/free/secret").body()).as(alias).isEqualTo("secret");
                assertThat(server.http().get(alias).body()).as(alias).isEqualTo("secret");
                assertThat(server.available("all"))
                        .as("%s, no exemption", alias)
                        .isEqualTo(98);
            }
            for (String alias : List.of("/KIND/Mi%C5%BF%C5%BF", "/%E2%84%AA%C4%B1nd/m%C4%B1ss")) {
                server.refill();
                assertThat(server.http().get("/kind/miss").body()).as(alias).isEqualTo("miss");
                assertThat(server.http().get(alias).status()).as(alias).isEqualTo(200);
                assertThat(server.available("variable", "miss")).as(alias).isEqualTo(98);
            }
        }
    }

    /** Literals of a pattern equal these letters, and wildcards compare ASCII letters alone. */
    @Test
    void lettersThatAreEqualOnlyInUpperCaseAreNoWayRoundWildcards() {
        List<String> patterns = List.of("/logi*", "/*in", "/l?gin", "/{x:logi.*}", "/logi*/**");
        StringBuilder yaml = new StringBuilder();
        for (int i = 0; i < patterns.size(); i++) {
            yaml.append("ratelimit.policies.login-%d: { rate: 100/1h, paths: \"%s\" }\n".formatted(i, patterns.get(i)));
        }
        try (TestServer server =
                TestServer.open(yaml.toString(), Api.class, AnyCase.class).start()) {
            for (String alias : List.of("/login", "/LOGIN", "/log%C4%B1n", "/LOG%C4%B0N", "/log%C4%B1n;a=b")) {
                server.refill();
                assertThat(server.http().get(alias).body()).as(alias).isEqualTo("login");
                for (int i = 0; i < patterns.size(); i++) {
                    assertThat(server.available("login-" + i))
                            .as("%s by %s", alias, patterns.get(i))
                            .isEqualTo(99);
                }
            }
        }
    }

    private static final String LETTERS = """
            ratelimit:
              policies:
                all: { rate: 100/1h }
                variable: { key: path-variable:id, rate: 100/1h, paths: /kind/* }
            """;

    @RestController
    static class Letters {

        @RateLimitExempt
        @GetMapping("/free/{any}")
        String free(@PathVariable String any) {
            return any;
        }

        @GetMapping("/free/secret")
        String secret() {
            return "secret";
        }

        @GetMapping("/kind/{id}")
        String variable(@PathVariable String id) {
            return id;
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
