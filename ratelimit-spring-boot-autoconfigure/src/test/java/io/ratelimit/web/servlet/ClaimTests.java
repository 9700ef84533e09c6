package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.crypto.MACSigner;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import io.ratelimit.annotation.RateLimited;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.oauth2.core.DefaultOAuth2AuthenticatedPrincipal;
import org.springframework.security.oauth2.core.OAuth2AccessToken;
import org.springframework.security.oauth2.core.OAuth2AccessToken.TokenType;
import org.springframework.security.oauth2.core.OAuth2AuthenticatedPrincipal;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.oauth2.server.resource.authentication.BearerTokenAuthentication;
import org.springframework.security.oauth2.server.resource.authentication.JwtAuthenticationToken;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Keys by claims, on a resource server that checks tokens. */
class ClaimTests {

    private static final String YAML = """
            ratelimit:
              policies:
                tenant: { key: claim:tenant, on-missing-key: shared, rate: 2/1h, paths: [/tenant, /open] }
                url: { key: "claim:https://x/tenant", on-missing-key: deny, rate: 100/1h, paths: /url }
                trial: { key: ip, condition: "claim('plan') == 'trial'", rate: 1/1h, paths: /plan }
                plans: { key: claim:tenant, rate: 1/1h, tiers: { gold: { rate: 100/1h } }, tier: claim:plan, paths: /tier }
                calls: { key: claim:tenant, rate: 1/1h, applies-to: annotated }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, ResourceServer.class);

    @Test
    void eachTenantHasABucketThatItsUsersShare() throws Exception {
        assertThat(get("/tenant", Map.of("sub", "alice", "tenant", "acme"))).isEqualTo(200);
        assertThat(get("/tenant", Map.of("sub", "bob", "tenant", "ACME"))).isEqualTo(200);
        assertThat(get("/tenant", Map.of("sub", "carol", "tenant", "acme"))).isEqualTo(429);
        assertThat(get("/tenant", Map.of("sub", "dave", "tenant", "other"))).isEqualTo(200);
    }

    @Test
    void aTokenThatIsNotAcceptedTakesNothing() throws Exception {
        String forged = token(Map.of("tenant", "acme")).replaceAll("\\.[^.]+$", ".AAAA");
        assertThat(server.http()
                        .get("/tenant", "Authorization: Bearer " + forged)
                        .status())
                .isEqualTo(401);
        assertThat(server.http().get("/tenant").status()).isEqualTo(401);
        assertThat(server.available("tenant", "acme")).isEqualTo(2);
    }

    @Test
    void aRequestWithoutTheClaimLacksThePart() throws Exception {
        assertThat(get("/tenant", Map.of("sub", "alice"))).isEqualTo(200);
        assertThat(get("/tenant", Map.of("tenant", List.of("acme")))).isEqualTo(200);
        assertThat(server.http().get("/open").status()).as("anonymous").isEqualTo(429);
        assertThat(get("/url", Map.of("tenant", "acme"))).isEqualTo(403);
    }

    @Test
    void theNameIsAllThatFollowsTheFirstColon() throws Exception {
        assertThat(get("/url", Map.of("https://x/tenant", 42))).isEqualTo(200);
        assertThat(server.available("url", "42")).isEqualTo(99);
    }

    @Test
    void conditionsAndTiersReadClaims() throws Exception {
        Map<String, Object> trial = Map.of("plan", "trial", "tenant", "small");
        Map<String, Object> gold = Map.of("plan", "Gold", "tenant", "large");
        assertThat(get("/plan", trial)).isEqualTo(200);
        assertThat(get("/plan", trial)).isEqualTo(429);
        assertThat(get("/plan", gold)).isEqualTo(200);
        assertThat(get("/tier", trial)).isEqualTo(200);
        assertThat(get("/tier", trial)).isEqualTo(429);
        assertThat(get("/tier", gold)).isEqualTo(200);
        assertThat(get("/tier", gold)).isEqualTo(200);
    }

    @Test
    void annotatedMethodsHaveTheClaimsOfTheRequest() throws Exception {
        assertThat(get("/call", Map.of("tenant", "acme"))).isEqualTo(200);
        assertThat(get("/call", Map.of("tenant", "acme"))).isEqualTo(429);
        assertThat(get("/call", Map.of("tenant", "other"))).isEqualTo(200);
    }

    @ParameterizedTest
    @ValueSource(strings = {"token", "introspected", "principal", "claims"})
    void eachKindOfUserHasItsClaims(String kind) {
        Authentication user = user(
                kind,
                Map.of("text", "acme", "number", 7L, "boolean", true, "list", List.of("a"), "iat", Instant.EPOCH));

        assertThat(UserPrincipal.claim(user, "text")).isEqualTo("acme");
        assertThat(UserPrincipal.claim(user, "number")).isEqualTo("7");
        assertThat(UserPrincipal.claim(user, "boolean")).isEqualTo("true");
        assertThat(UserPrincipal.claim(user, "list")).isNull();
        assertThat(UserPrincipal.claim(user, "iat")).isNull();
        assertThat(UserPrincipal.claim(user, "other")).isNull();
        user.setAuthenticated(false);
        assertThat(UserPrincipal.claim(user, "text")).isNull();
    }

    @Test
    void otherUsersHaveNone() {
        OAuth2AuthenticatedPrincipal principal = principal(Map.of("text", "acme"));
        var authorities = AuthorityUtils.createAuthorityList("ROLE_ANONYMOUS");
        assertThat(UserPrincipal.claim(null, "text")).isNull();
        assertThat(UserPrincipal.claim(() -> "alice", "text")).isNull();
        assertThat(UserPrincipal.claim(new TestingAuthenticationToken("alice", null, authorities), "text"))
                .isNull();
        assertThat(UserPrincipal.claim(new AnonymousAuthenticationToken("key", principal, authorities), "text"))
                .isNull();
    }

    private static Authentication user(String kind, Map<String, Object> claims) {
        Jwt jwt = Jwt.withTokenValue("text")
                .header("alg", "none")
                .claims(all -> all.putAll(claims))
                .build();
        return switch (kind) {
            case "token" -> new JwtAuthenticationToken(jwt, AuthorityUtils.NO_AUTHORITIES);
            case "introspected" ->
                new BearerTokenAuthentication(
                        principal(claims),
                        new OAuth2AccessToken(TokenType.BEARER, "text", null, null),
                        AuthorityUtils.NO_AUTHORITIES);
            case "principal" -> new TestingAuthenticationToken(principal(claims), null, AuthorityUtils.NO_AUTHORITIES);
            default -> new TestingAuthenticationToken(jwt, null, AuthorityUtils.NO_AUTHORITIES);
        };
    }

    private static OAuth2AuthenticatedPrincipal principal(Map<String, Object> attributes) {
        return new DefaultOAuth2AuthenticatedPrincipal("alice", attributes, AuthorityUtils.NO_AUTHORITIES);
    }

    private static int get(String path, Map<String, Object> claims) throws Exception {
        return server.http().get(path, "Authorization: Bearer " + token(claims)).status();
    }

    private static String token(Map<String, Object> claims) throws Exception {
        JWTClaimsSet.Builder set = new JWTClaimsSet.Builder().subject("alice");
        claims.forEach(set::claim);
        SignedJWT token = new SignedJWT(new JWSHeader(JWSAlgorithm.HS256), set.build());
        token.sign(new MACSigner(ResourceServer.KEY));
        return token.serialize();
    }

    @RestController
    static class ResourceServer {

        static final SecretKey KEY = new SecretKeySpec(
                "a secret that only this test knows".getBytes(StandardCharsets.US_ASCII), "HmacSHA256");

        @Bean
        JwtDecoder decoder() {
            return NimbusJwtDecoder.withSecretKey(KEY).build();
        }

        @Bean
        SecurityFilterChain security(HttpSecurity http) {
            return http.authorizeHttpRequests(requests -> requests.requestMatchers("/open")
                            .permitAll()
                            .anyRequest()
                            .authenticated())
                    .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
                    .build();
        }

        @GetMapping({"/tenant", "/open", "/url", "/plan", "/tier"})
        String read() {
            return "read";
        }

        @GetMapping("/call")
        @RateLimited(policy = "calls")
        public String call() {
            return "called";
        }
    }
}
