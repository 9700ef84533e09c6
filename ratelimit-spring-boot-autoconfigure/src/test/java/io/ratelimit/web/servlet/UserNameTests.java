package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.annotation.RateLimited;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.security.Principal;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.security.authentication.AbstractAuthenticationToken;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.AuthenticatedPrincipal;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextImpl;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.UsernamePasswordAuthenticationFilter;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.OncePerRequestFilter;

/** Users whose authentication has a name that lasts, and users whose name is the text of some object. */
@ExtendWith(OutputCaptureExtension.class)
class UserNameTests {

    private static final String YAML = """
            ratelimit:
              policies:
                per-user: { key: user, rate: 100/1h, on-missing-key: shared, paths: /user }
                by-expression: { key: ["expression:user + ' of ' + method"], rate: 100/1h, paths: /user }
                if-named: { rate: 100/1h, condition: "user != null", paths: /user }
                calls: { key: user, rate: 100/1h, applies-to: annotated, on-missing-key: shared }
                argument: { key: ip, rate: 100/1h, applies-to: annotated, on-missing-key: shared }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, Api.class);

    @ParameterizedTest
    @ValueSource(strings = {"text", "details", "authenticated-principal", "principal", "number", "uuid", "own-name"})
    void aNameThatLastsIsTheKey(String kind, CapturedOutput output) {
        for (int i = 0; i < 3; i++) {
            assertThat(get("/user", kind)).isEqualTo(200);
            assertThat(get("/calls", kind)).isEqualTo(200);
            assertThat(get("/argument", kind)).isEqualTo(200);
        }
        assertThat(server.available("per-user", Api.ID)).isEqualTo(97);
        assertThat(server.available("if-named")).isEqualTo(97);
        assertThat(server.available("calls", Api.ID)).isEqualTo(97);
        assertThat(server.available("argument", Api.ID)).isEqualTo(97);
        assertThat(output).doesNotContain("toString()");
    }

    /** Each request has a different text. All count as one missing key, so that a new login gets no new bucket. */
    @Test
    void theTextOfAnObjectIsNoName(CapturedOutput output) {
        for (int i = 0; i < 100; i++) {
            assertThat(get("/user", "object")).isEqualTo(200);
            assertThat(get("/calls", "object")).isEqualTo(200);
            assertThat(get("/argument", "object")).isEqualTo(200);
        }
        assertThat(get("/user", "object")).isEqualTo(429);
        assertThat(get("/calls", "object")).isEqualTo(429);
        assertThat(get("/argument", "object")).isEqualTo(429);
        assertThat(server.available("if-named")).as("has no user").isEqualTo(100);
        assertThat(output.getAll().lines().filter(line -> line.contains("toString()")))
                .singleElement()
                .asString()
                .contains("The principal of an authentication is a " + Session.class.getName()
                        + ", whose toString() would be the name of the user. That text may change with each login or"
                        + " request, so throttle policies treat the user as missing. Have the class implement"
                        + " java.security.Principal or AuthenticatedPrincipal with a stable name, or key the policy by"
                        + " 'bean:NAME'. This is logged once for the class");
    }

    private static int get(String path, String kind) {
        return server.http().get(path, "X-Kind: " + kind).status();
    }

    /** A principal of an application that forgot a method. */
    static final class Session {}

    private record Member(String name) implements Principal, AuthenticatedPrincipal {
        @Override
        public String getName() {
            return name;
        }
    }

    /** The authentication of a resource server, whose principal is a token and whose name is the subject. */
    private static final class TokenAuthentication extends AbstractAuthenticationToken {

        TokenAuthentication() {
            super(AuthorityUtils.NO_AUTHORITIES);
            setAuthenticated(true);
        }

        @Override
        public Object getCredentials() {
            return "";
        }

        @Override
        public Object getPrincipal() {
            return new Session();
        }

        @Override
        public String getName() {
            return Api.ID;
        }
    }

    @RestController
    static class Api {

        static final String ID = "11111111-1111-1111-1111-111111111111";

        @GetMapping("/user")
        String user() {
            return "done";
        }

        @GetMapping("/calls")
        @RateLimited("calls")
        String calls() {
            return "done";
        }

        @GetMapping("/argument")
        @RateLimited(policy = "argument", key = "#user")
        String argument(Principal user) {
            return "done";
        }

        @Bean
        static SecurityFilterChain chain(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .addFilterBefore(new Filter(), UsernamePasswordAuthenticationFilter.class)
                    .build();
        }
    }

    private static final class Filter extends OncePerRequestFilter {

        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            SecurityContextHolder.setContext(new SecurityContextImpl(authentication(request.getHeader("X-Kind"))));
            chain.doFilter(request, response);
        }

        private static Authentication authentication(String kind) {
            return switch (kind) {
                case "text" -> of(Api.ID);
                case "details" ->
                    of(User.withUsername(Api.ID).password("x").roles("USER").build());
                case "authenticated-principal" -> of((AuthenticatedPrincipal) () -> Api.ID);
                case "principal" -> of(new Member(Api.ID));
                case "number" ->
                    of(new java.math.BigInteger("1") {
                        @Override
                        public String toString() {
                            return Api.ID;
                        }
                    });
                case "uuid" -> of(UUID.fromString(Api.ID));
                case "own-name" -> new TokenAuthentication();
                default -> of(new Session());
            };
        }

        private static Authentication of(Object principal) {
            return UsernamePasswordAuthenticationToken.authenticated(principal, null, AuthorityUtils.NO_AUTHORITIES);
        }
    }
}
