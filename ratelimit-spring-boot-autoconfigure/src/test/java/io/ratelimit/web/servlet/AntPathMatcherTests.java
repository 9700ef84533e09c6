package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.PathTests.Mount;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletResponse;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.util.AntPathMatcher;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.config.annotation.PathMatchConfigurer;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/**
 * Applications with {@code matching-strategy: ant_path_matcher}. Spring MVC then decodes the whole path, and drops
 * parameters and empty segments, before it compares.
 */
class AntPathMatcherTests {

    private static final String YAML = """
            server.servlet.context-path: "%s"
            spring:
              web.resources.add-mappings: false
              mvc:
                servlet.path: "%s"
                pathmatch.matching-strategy: ant_path_matcher
            ratelimit:
              policies:
                login: { rate: 1000/1d, paths: "%3$s/login" }
                item: { key: path-variable:id, on-missing-key: skip, rate: 1000/1d, paths: "%3$s/items/*/**" }
                endpoint: { key: endpoint, rate: 1000/1d }
            """;

    private static TestServer start(Mount mount, Class<?>... sources) {
        String context = mount.context();
        String servlet = mount.prefix().isEmpty() ? "/" : mount.prefix();
        return TestServer.open(YAML.formatted(context, servlet, mount.prefix()), sources)
                .start();
    }

    /** Returns the spellings of a path that reach its handler, each charged as the path itself is. */
    private static List<String> reached(TestServer server, List<String> spellings, String answer) {
        List<String> reached = new ArrayList<>();
        for (String target : spellings) {
            server.refill();
            if (server.http().get(target).body().equals(answer)) {
                reached.add(target);
                assertThat(server.available("endpoint", "GET " + answer))
                        .as(target)
                        .isEqualTo(999);
                if (answer.equals("/login")) {
                    assertThat(server.available("login")).as(target).isEqualTo(999);
                } else {
                    assertThat(server.available("item", "7")).as(target).isEqualTo(999);
                }
            }
        }
        return reached;
    }

    @ParameterizedTest
    @EnumSource(names = {"ROOT", "CONTEXT_AND_SERVLET"})
    void aRequestThatReachesTheHandlerIsCharged(Mount mount) {
        String base = mount.context() + mount.prefix();
        try (TestServer server = start(mount, Api.class)) {
            assertThat(reached(server, mount.spellings("/login"), "/login"))
                    .contains(base + "/login", base + "//login", base + "/;a=b/login", base + "/%6cogin");
            assertThat(reached(server, mount.spellings("/items/7/parts"), "/items/{id}/parts"))
                    .contains(base + "/items/7/parts", base + "//items/7/parts", base + "/;a=b/items/7/parts");
        }
    }

    @Test
    void policiesIgnoreCaseIfTheMatcherDoes() {
        List<String> spellings = List.of("/login", "/LOGIN", "/Login;a", "//logIn", "/log%C4%B1n", "/LOG%C4%B0N");
        try (TestServer server = start(Mount.ROOT, Api.class, AnyCase.class)) {
            assertThat(reached(server, spellings, "/login")).isEqualTo(spellings);
            List<String> items = List.of("/ITEMS/7/Parts", "/item%C5%BF/7/part%C5%BF");
            assertThat(reached(server, items, "/items/{id}/parts")).isEqualTo(items);
        }
    }

    static class AnyCase implements WebMvcConfigurer {

        @Override
        @SuppressWarnings("removal")
        public void configurePathMatch(PathMatchConfigurer configurer) {
            AntPathMatcher matcher = new AntPathMatcher();
            matcher.setCaseSensitive(false);
            configurer.setPathMatcher(matcher);
        }
    }

    @RestController
    static class Api {

        @GetMapping("/login")
        String login() {
            return "/login";
        }

        @GetMapping("/items/{id}/parts")
        String parts(@PathVariable String id) {
            return id.equals("7") ? "/items/{id}/parts" : "another";
        }

        /** Answers the failures of Spring MVC, which can't parse all of these paths and would fill the log. */
        @Bean
        FilterRegistrationBean<Filter> unreadable() {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                try {
                    chain.doFilter(request, response);
                } catch (ServletException unreadablePath) {
                    ((HttpServletResponse) response).setStatus(400);
                }
            });
            registration.setOrder(Ordered.LOWEST_PRECEDENCE);
            return registration;
        }
    }
}
