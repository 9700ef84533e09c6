package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServlet;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.servlet.config.annotation.ResourceHandlerRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.servlet.function.RequestPredicates;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** The warnings at the start about paths of policies that nothing in the application serves. */
@ExtendWith(OutputCaptureExtension.class)
class UnservedPathTests {

    private static final Pattern WARNING = Pattern.compile("No endpoint of this application matches '([^']+)'");

    @Test
    void aPathThatNothingServesIsOneWarning(CapturedOutput output) {
        assertThat(unserved(output, """
                ratelimit.policies:
                  typo: { rate: 5/s, paths: [/public/seerch, /public/search] }
                """, Api.class)).containsExactly("/public/seerch");
        assertThat(output)
                .contains("No endpoint of this application matches '/public/seerch', a path of the throttle policy"
                        + " 'typo': unless a filter serves it, the policy limits nothing there. Correct the path, or"
                        + " remove it");
    }

    @Test
    void pathsOfEndpointsAreServedAndOthersAreNot(CapturedOutput output) {
        assertThat(unserved(
                        output,
                        paths(
                                "/**",
                                "/{a}",
                                "/public/**",
                                "/public/{*rest}",
                                "/public/search/",
                                "/items/special",
                                "/items/{other}",
                                "/*/items",
                                "/acme/i*",
                                "/v?/items",
                                "/items/{id:[a-z]+}",
                                "/functions/sum",
                                "/actuator/health",
                                "/actuator/**",
                                "/error",
                                "/items",
                                "/items/a/b",
                                "/publik/search/**",
                                "/public/{id:\\\\d+}",
                                "/a/b/c/**",
                                "/actuator/nothing/at/all",
                                "/Public/Search",
                                "/functions/sum/more"),
                        Api.class))
                .containsExactly(
                        "/items",
                        "/items/a/b",
                        "/publik/search/**",
                        "/public/{id:\\d+}",
                        "/a/b/c/**",
                        "/actuator/nothing/at/all",
                        "/Public/Search",
                        "/functions/sum/more");
    }

    @Test
    void filesAndServletsAreServed(CapturedOutput output) {
        assertThat(unserved(
                        output,
                        paths(
                                        "/ratelimit/**",
                                        "/ratelimit/web/servlet/UnservedPathTests.class",
                                        "/webjars/**",
                                        "/nothing.css",
                                        "/rest/**",
                                        "/rest/a/b",
                                        "/soap")
                                + "\nspring.web.resources.static-locations: 'classpath:/io/'",
                        Api.class,
                        OtherServlets.class))
                .containsExactly("/nothing.css");
    }

    /** Files may come later where a directory is served. */
    @Test
    void nothingIsKnownOfFilesInDirectories(CapturedOutput output) {
        assertThat(unserved(
                        output,
                        paths("/uploads/**") + "\nspring.web.resources.static-locations: 'file:/srv/files/'",
                        Api.class))
                .isEmpty();
        assertThat(unserved(output, paths("/uploads/**", "/nothing/at/all/**"), Api.class, Uploads.class))
                .containsExactly("/nothing/at/all/**");
    }

    @Test
    void nothingIsKnownOfOtherFiltersAndRoutes(CapturedOutput output) {
        assertThat(unserved(output, paths("/nothing"), Api.class, RawFilter.class))
                .isEmpty();
        assertThat(unserved(output, paths("/nothing"), Api.class, Proxy.class)).isEmpty();
        assertThat(unserved(output, paths("/nothing"), Api.class, SpringFilter.class))
                .containsExactly("/nothing");
    }

    @Test
    void theLoginOfSpringSecurityIsServed(CapturedOutput output) {
        int before = output.length();
        TestServer.secured(
                        paths("/login", "/logout", "/oauth2/**", "/api/sign-in", "/api/sing-in", "/public/*"),
                        Api.class,
                        FormLogin.class)
                .start()
                .close();
        assertThat(warned(output, before)).containsExactly("/api/sing-in");
    }

    @Test
    void aPathWithAQueryStringIsOneWarning(CapturedOutput output) {
        assertThat(unserved(output, """
                ratelimit.policies.search:
                  rate: 5/s
                  paths: ["/public/search?q=*", "/public/s?arch", "/public/{x:(?=s).+}"]
                  exclude-paths: "/public/search?admin=true"
                """, Api.class)).isEmpty();
        for (String path : List.of("/public/search?q=*", "/public/search?admin=true")) {
            assertThat(output)
                    .containsOnlyOnce(
                            "The path pattern '" + path + "' of the throttle policy 'search' looks like a path"
                                    + " with a query string, which paths don't have: '?' stands for one character, so no"
                                    + " endpoint of this application matches. Write '/public/search', and select requests by"
                                    + " their query in the policy's condition");
        }
        assertThat(output.getOut().lines().filter(line -> line.contains(" WARN ")))
                .hasSize(2);
    }

    private static String paths(String... paths) {
        return "ratelimit.policies.some: { rate: 1000/s, key: ip, paths: [\"" + String.join("\", \"", paths) + "\"] }";
    }

    private static List<String> unserved(CapturedOutput output, String yaml, Class<?>... sources) {
        int before = output.length();
        TestServer.open(yaml, sources).start().close();
        return warned(output, before);
    }

    private static List<String> warned(CapturedOutput output, int before) {
        return WARNING.matcher(output.toString().substring(before))
                .results()
                .map((MatchResult warning) -> warning.group(1))
                .toList();
    }

    @RestController
    static class Api {

        @GetMapping({"/public/search", "/items/{id}", "/{tenant}/items"})
        String get() {
            return "";
        }

        @Bean
        RouterFunction<ServerResponse> functions() {
            return RouterFunctions.route()
                    .path(
                            "/functions",
                            nested -> nested.GET(
                                    "/sum", request -> ServerResponse.ok().build()))
                    .build();
        }
    }

    static class OtherServlets {

        @Bean
        ServletRegistrationBean<HttpServlet> rest() {
            return new ServletRegistrationBean<>(new HttpServlet() {}, "/rest/*", "/soap");
        }
    }

    static class Uploads implements WebMvcConfigurer {

        @Override
        public void addResourceHandlers(ResourceHandlerRegistry registry) {
            registry.addResourceHandler("/uploads/**").addResourceLocations("file:/srv/uploads/");
        }
    }

    static class RawFilter {

        @Bean
        Filter raw() {
            return (request, response, chain) -> chain.doFilter(request, response);
        }
    }

    static class SpringFilter {

        @Bean
        Filter spring() {
            return new OncePerRequestFilter() {
                @Override
                protected void doFilterInternal(
                        jakarta.servlet.http.HttpServletRequest request,
                        jakarta.servlet.http.HttpServletResponse response,
                        jakarta.servlet.FilterChain chain)
                        throws java.io.IOException, jakarta.servlet.ServletException {
                    chain.doFilter(request, response);
                }
            };
        }
    }

    static class Proxy {

        @Bean
        RouterFunction<ServerResponse> proxy() {
            return RouterFunctions.route(RequestPredicates.headers(headers -> false), request -> ServerResponse.ok()
                    .build());
        }
    }

    static class FormLogin {

        @Bean
        SecurityFilterChain chain(HttpSecurity http) {
            return http.formLogin(login -> login.loginProcessingUrl("/api/sign-in"))
                    .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .build();
        }
    }
}
