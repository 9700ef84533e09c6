package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimit.Throttlers;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.http.MediaType;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.access.intercept.AuthorizationFilter;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.GenericFilterBean;
import org.springframework.web.servlet.View;

/** Requests that a filter of the application, or of the container, forwards or suspends before the limits have seen them. */
@Timeout(60)
class ComingDispatchTests {

    private static final String YAML = """
            ratelimit:
              policies:
                login: { key: ip, rate: 2/1h, paths: /login }
                users: { key: user, rate: 2/1h, paths: /hello }
                slow: { key: ip, rate: 1/1h, paths: /slow, rejection-delay: 1s }
                busy: { in-flight: 1 }
            """;

    private static final String SECURED = """
            ratelimit:
              policies:
                users: { key: user, rate: 2/1h, paths: /hello }
                accounts: { rate: 100/1h, in-flight: 1 }
            """;

    private static final String ALICE = "X-User: alice";

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class, InFront.class);

    @RegisterExtension
    static final TestServer secured = TestServer.secured(SECURED, Api.class, Between.class, Security.class);

    @ParameterizedTest
    @ValueSource(strings = {"/forwarded/login", "/suspended/login", "/forwarded/hello", "/suspended/hello"})
    void aRequestPaysOnceIfAFilterInFrontDispatchesIt(String path) {
        String policy = path.endsWith("login") ? "login" : "users";
        for (int i = 0; i < 2; i++) {
            Response response = server.http().get(path);
            assertThat(response.status()).isEqualTo(200);
            assertThat(response.header("RateLimit")).startsWith("\"" + policy + "\";r=" + (1 - i));
            awaitNoneInFlight(server, "busy");
        }
        Response refused = server.http().get(path);
        assertThat(refused.status()).isEqualTo(429);
        assertThat(refused.body()).contains("[\"" + policy + "\"]");
        awaitNoneInFlight(server, "busy");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/forwarded/work", "/suspended/work"})
    void itIsInFlightUntilItsOwnWorkIsComplete(String path) {
        Api api = server.bean(Api.class);
        api.work = new CompletableFuture<>();
        CompletableFuture<Response> working = get(path);
        await().until(() -> server.bean(Throttlers.class).inFlight("busy") == 1);
        assertThat(server.http().get(path).status()).isEqualTo(429);
        api.work.complete("done");
        assertThat(working.join().body()).isEqualTo("done");
        awaitNoneInFlight(server, "busy");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/forwarded/slow", "/suspended/slow"})
    void itsRejectionIsDelayed(String path) {
        assertThat(server.http().get(path).status()).isEqualTo(200);
        awaitNoneInFlight(server, "busy");
        CompletableFuture<Response> refused = get(path);
        await().until(() -> {
            server.advance(Duration.ofSeconds(1));
            return refused.isDone();
        });
        assertThat(refused.join().status()).isEqualTo(429);
        assertThat(refused.join().body()).contains("[\"slow\"]");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/forwarded/hello", "/suspended/hello"})
    void anAuthenticatedRequestPaysOnceIfAFilterBetweenThePhasesDispatchesIt(String path) {
        for (int i = 0; i < 2; i++) {
            assertThat(secured.http().get(path, ALICE).status()).isEqualTo(200);
            assertThat(secured.available("accounts")).isEqualTo(99 - i);
            awaitNoneInFlight(secured, "accounts");
        }
        Response refused = secured.http().get(path, ALICE);
        assertThat(refused.status()).isEqualTo(429);
        assertThat(refused.body()).contains("[\"users\"]");
        awaitNoneInFlight(secured, "accounts");
    }

    /** Neither filter in front has a reason to complete it, and no further dispatch follows. */
    @Test
    void whatAFilterBetweenThePhasesSuspendsIsInFlightUntilItIsComplete() {
        Api api = secured.bean(Api.class);
        api.work = new CompletableFuture<>();
        CompletableFuture<Response> working = CompletableFuture.supplyAsync(
                () -> secured.http().get("/suspended/bare", ALICE), task -> new Thread(task).start());
        await().until(() -> secured.bean(Throttlers.class).inFlight("accounts") == 1);
        api.work.complete("done");
        assertThat(working.join().body()).isEqualTo("done");
        awaitNoneInFlight(secured, "accounts");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/hello", "/forwarded/hello", "/suspended/hello"})
    void strangersDrainNothingThatAccountsShare(String path) {
        assertThat(secured.http().get(path).status()).isEqualTo(403);
        assertThat(secured.available("accounts")).isEqualTo(100);
    }

    @Test
    void anErrorPageThatForwardsIsFree() {
        Response forbidden = secured.http().get("/closed", ALICE, "Accept: text/html");
        assertThat(forbidden.status()).isEqualTo(403);
        assertThat(forbidden.body()).isEqualTo("hello");
        assertThat(secured.available("accounts")).isEqualTo(100);
    }

    private static CompletableFuture<Response> get(String path) {
        return CompletableFuture.supplyAsync(() -> server.http().get(path), task -> new Thread(task).start());
    }

    private static void awaitNoneInFlight(TestServer server, String policy) {
        await().until(() -> server.bean(Throttlers.class).inFlight(policy) == 0);
    }

    @RestController
    static class Api {

        volatile CompletableFuture<String> work = new CompletableFuture<>();

        @GetMapping({"/login", "/hello", "/slow", "/closed"})
        String hello() {
            return "hello";
        }

        @GetMapping("/work")
        CompletableFuture<String> work() {
            return work;
        }

        /** Asynchronous work that ends without another dispatch. */
        @GetMapping("/bare")
        void bare(HttpServletRequest request, HttpServletResponse response) {
            AsyncContext async = request.startAsync();
            work.thenAccept(text -> {
                try {
                    async.getResponse().getWriter().print(text);
                } catch (IOException clientIsGone) {
                    throw new UncheckedIOException(clientIsGone);
                }
                async.complete();
            });
        }
    }

    static class InFront {

        @Bean
        FilterRegistrationBean<Filter> rewriting() {
            return rewriting(Ordered.HIGHEST_PRECEDENCE);
        }

        static FilterRegistrationBean<Filter> rewriting(int order) {
            FilterRegistrationBean<Filter> registration = new FilterRegistrationBean<>((request, response, chain) -> {
                String path = ((HttpServletRequest) request).getRequestURI();
                String target = path.substring(path.lastIndexOf('/'));
                if (path.startsWith("/forwarded")) {
                    request.getRequestDispatcher(target).forward(request, response);
                } else {
                    AsyncContext async = request.startAsync();
                    new Thread(() -> async.dispatch(target)).start();
                }
            });
            registration.addUrlPatterns("/forwarded/*", "/suspended/*");
            registration.setOrder(order);
            registration.setAsyncSupported(true);
            return registration;
        }
    }

    static class Between {

        @Bean
        FilterRegistrationBean<Filter> rewriting() {
            return InFront.rewriting(-5000);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Security extends BasicSecurity {

        @Bean
        @Override
        public SecurityFilterChain security(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.requestMatchers("/closed")
                            .denyAll()
                            .anyRequest()
                            .authenticated())
                    .addFilterBefore(new UserFilter(), AuthorizationFilter.class)
                    .build();
        }

        /** Authenticates in each dispatch. HTTP Basic doesn't in an asynchronous one. */
        private static final class UserFilter extends GenericFilterBean {

            @Override
            public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                    throws IOException, ServletException {
                String user = ((HttpServletRequest) request).getHeader("X-User");
                if (user != null) {
                    SecurityContextHolder.setContext(
                            new SecurityContextImpl(UsernamePasswordAuthenticationToken.authenticated(
                                    user, null, AuthorityUtils.NO_AUTHORITIES)));
                }
                chain.doFilter(request, response);
            }
        }

        /** The error page of browsers. */
        @Bean
        View error() {
            return new View() {

                @Override
                public String getContentType() {
                    return MediaType.TEXT_HTML_VALUE;
                }

                @Override
                public void render(
                        @Nullable Map<String, ?> model, HttpServletRequest request, HttpServletResponse response)
                        throws ServletException, IOException {
                    request.getRequestDispatcher("/hello").forward(request, response);
                }
            };
        }
    }
}
