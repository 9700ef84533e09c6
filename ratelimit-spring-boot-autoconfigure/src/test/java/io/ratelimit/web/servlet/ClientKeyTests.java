package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.key.KeyResolver;
import io.ratelimit.web.servlet.RawHttp.Response;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Keys from cookies, query, path, session, beans and expressions. */
@ExtendWith(OutputCaptureExtension.class)
class ClientKeyTests {

    private static final String YAML = """
            server:
              max-http-request-header-size: 512KB
              tomcat.relaxed-query-chars: "|"
            ratelimit:
              policies:
                cookie: { key: cookie:device, rate: 1/1h, paths: /cookie }
                query: { key: query:key, rate: 1/1h, paths: /query }
                form: { key: query:key, rate: 10/1h, paths: /form }
                tenant: { key: path-variable:tenant, on-missing-key: shared, rate: 2/1h, paths: /tenants/** }
                session: { key: session, rate: 1/1h, paths: /session }
                bean: { key: bean:tenantKey, rate: 1/1h, paths: /bean }
                bean-deny: { key: bean:tenantKey, on-missing-key: deny, rate: 1/1h, paths: /bean/deny }
                bean-skip: { key: bean:tenantKey, on-missing-key: skip, rate: 1/1h, paths: /bean/skip }
                expression:
                  key: "expression:header('X-Plan') == 'gold' ? header('X-Key') : ip"
                  rate: 1/1h
                  paths: /expression
                expression-deny:
                  key: ["expression:header('X-Key').substring(0, 3)"]
                  on-missing-key: deny
                  rate: 1/1h
                  paths: /expression/deny
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    // Cookies

    @Test
    void aCookiesFirstValueCounts() {
        assertThat(get("/cookie", "Cookie: device=one")).isEqualTo(200);
        assertThat(get("/cookie", "Cookie: device=two")).isEqualTo(200);
        assertThat(get("/cookie", "Cookie: device=one")).isEqualTo(429);
        assertThat(get("/cookie", "Cookie: a=b; device=one; c=d")).isEqualTo(429);
        assertThat(get("/cookie", "Cookie: device=one; device=fresh")).isEqualTo(429);
        assertThat(get("/cookie", "Cookie: device=one", "Cookie: device=fresh")).isEqualTo(429);
        assertThat(get("/cookie", "Cookie: device=fresh; device=one")).isEqualTo(200);
        assertThat(get("/cookie", "Cookie: device=%6fne"))
                .as("as controllers get it")
                .isEqualTo(429);
        assertThat(get("/cookie", "Cookie: device=%zz")).isEqualTo(200);
        assertThat(get("/cookie", "Cookie: Device=other")).as("no device").isEqualTo(200);
        assertThat(get("/cookie", "Cookie: DEVICE=another")).as("no device").isEqualTo(429);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "X-A: b",
                "Cookie:",
                "Cookie: ;;;",
                "Cookie: device",
                "Cookie: device=",
                "Cookie: device=; device=one",
                "Cookie: =one"
            })
    void theAddressIsThePlaceholderOfACookie(String header) {
        assertThat(get("/cookie")).isEqualTo(200);
        assertThat(get("/cookie", header)).isEqualTo(429);
        assertThat(server.http().from("127.0.0.9").get("/cookie", header).status())
                .isEqualTo(200);
    }

    /** The container rejects more than 200 cookies. */
    @Test
    void aFloodOfCookiesIsNoWayOut() {
        String many = "Cookie: " + "a=b; ".repeat(199) + "device=one";
        assertThat(get("/cookie", many)).isEqualTo(200);
        assertThat(get("/cookie", many)).isEqualTo(429);
        assertThat(get("/cookie", "Cookie: " + "a=b; ".repeat(5000) + "device=two"))
                .isEqualTo(400);
    }

    // The query

    @Test
    void aParametersFirstValueCountsDecoded() {
        assertThat(get("/query?key=one")).isEqualTo(200);
        assertThat(get("/query?key=two")).isEqualTo(200);
        for (String same :
                List.of("key=one", "a=b&key=one", "%6bey=one", "key=%6fne", "key=one&key=fresh", "&key=one")) {
            assertThat(get("/query?" + same)).as(same).isEqualTo(429);
        }
        assertThat(get("/query?KEY=one")).as("no key").isEqualTo(200);
        assertThat(get("/query?key=fresh&key=one")).isEqualTo(200);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "?",
                "?key",
                "?key=",
                "?key=%20",
                "?key=+",
                "?key=%zz",
                "?key=%",
                "?key=%f",
                "?key=%&key=fresh",
                "?=fresh",
                "?%zz=fresh",
                "?a=%zz",
                "?|=|"
            })
    void theAddressIsThePlaceholderOfAParameter(String query) {
        assertThat(get("/query")).isEqualTo(200);
        assertThat(get("/query" + query)).isEqualTo(429);
        assertThat(server.http().from("127.0.0.9").get("/query" + query).status())
                .isEqualTo(200);
    }

    @Test
    void aFormIsLeftToTheController() {
        String form = "key=body&other=2";
        String request = RawHttp.text(
                        "POST",
                        "/form?key=query",
                        "Content-Type: application/x-www-form-urlencoded",
                        "Content-Length: " + form.length())
                + form;
        assertThat(server.http().send(request).body()).isEqualTo("raw " + form);
        assertThat(server.available("form", "query")).isEqualTo(9);

        assertThat(server.http().send(request.replace("?key=query", "")).body()).isEqualTo("raw " + form);
        assertThat(server.available("form", "body")).as("read from the body").isEqualTo(10);
    }

    @Test
    void keysOfAHundredThousandCharactersAreComparedToTheirEnd() {
        String value = "x".repeat(100_000);
        for (String policy : List.of("/query?key=", "/cookie|Cookie: device=", "/expression|X-Plan: gold|X-Key: ")) {
            assertThat(get((policy + value + "1").split("\\|"))).as(policy).isEqualTo(200);
            assertThat(get((policy + value + "2").split("\\|"))).as(policy).isEqualTo(200);
            assertThat(get((policy + value + "1").split("\\|"))).as(policy).isEqualTo(429);
        }
        assertThat(get("/tenants/" + value + "1/items")).isEqualTo(200);
        assertThat(get("/tenants/" + value + "1/items")).isEqualTo(200);
        assertThat(get("/tenants/" + value + "2/items")).isEqualTo(200);
        assertThat(get("/tenants/" + value + "1/items")).isEqualTo(429);
    }

    // The path

    @Test
    void eachTenantHasOneBucketInAnySpellingOfThePath() {
        assertThat(get("/tenants/one/items")).isEqualTo(200);
        assertThat(get("/tenants/%6fne/items")).isEqualTo(200);
        for (String same : List.of("one/items", "one;a=b/items", "one/items/", "one/items?a=b", "%6Fne/orders")) {
            assertThat(get("/tenants/" + same)).as(same).isEqualTo(429);
        }
        assertThat(server.http().request("HEAD", "/tenants/one/items").status()).isEqualTo(429);
        assertThat(get("/tenants/two/items")).isEqualTo(200);
    }

    @Test
    void aPathVariableThatTheEndpointLacksIsMissing() {
        assertThat(get("/tenants/none")).isEqualTo(404);
        assertThat(get("/tenants/all")).isEqualTo(200);
        assertThat(get("/tenants/all")).isEqualTo(429);
        assertThat(get("/tenants/other/of/another/name")).isEqualTo(429);
        assertThat(server.http().request("PUT", "/tenants/two/items").status())
                .as("no such method")
                .isEqualTo(429);
        assertThat(get("/tenants/two/items")).isEqualTo(200);
    }

    @Test
    void theContextPathAndTheServletsPathAreNoPartOfIt() {
        String yaml = """
                server.servlet.context-path: /shop
                spring.mvc.servlet.path: /app
                ratelimit.policies.tenant:
                  key: path-variable:tenant
                  on-missing-key: deny
                  rate: 1/1h
                  condition: path.startsWith('/app/tenants/')
                """;
        try (TestServer server = TestServer.open(yaml, Api.class).start()) {
            RawHttp http = server.http();
            assertThat(http.get("/shop/app/tenants/one/items").status()).isEqualTo(200);
            assertThat(http.get("/shop/app/tenants/%6fne/items").status()).isEqualTo(429);
            assertThat(http.get("/shop/app/tenants/two/items").status()).isEqualTo(200);
            assertThat(http.get("/shop/app/tenants/all").status()).isEqualTo(403);
            assertThat(http.get("/shop/app/query").status()).isEqualTo(200);
            for (String odd : List.of("/shop/%61pp/tenants/two/items", "//shop/app/tenants/two/items")) {
                assertThat(http.get(odd).status()).as(odd).isIn(403, 429);
            }
        }
    }

    // The session

    @Test
    void aSessionThatExistsCountsAndNoneIsMade() {
        Response first = server.http().get("/session");
        assertThat(first.status()).isEqualTo(200);
        assertThat(first.names()).doesNotContain("Set-Cookie");
        assertThat(get("/session")).as("the address").isEqualTo(429);
        assertThat(get("/session", "Cookie: JSESSIONID=invented"))
                .as("the address")
                .isEqualTo(429);
        assertThat(get("/session;jsessionid=invented")).as("the address").isEqualTo(429);

        String one = newSession();
        assertThat(get("/session", one)).isEqualTo(200);
        assertThat(get("/session", one)).isEqualTo(429);
        assertThat(get("/session", newSession())).isEqualTo(200);
    }

    private static String newSession() {
        return "Cookie: " + server.http().get("/login").header("Set-Cookie").split(";")[0];
    }

    // Beans and expressions

    @Test
    void aBeanResolvesTheKey() {
        assertThat(get("/bean", "X-Tenant: one")).isEqualTo(200);
        assertThat(get("/bean", "X-Tenant: two")).isEqualTo(200);
        assertThat(get("/bean", "X-Tenant: ONE")).isEqualTo(429);
    }

    @ParameterizedTest
    @ValueSource(strings = {"X-A: b", "X-Tenant:", "X-Tenant: blank", "X-Tenant: throw", "X-Tenant: checked"})
    void aBeanThatReturnsNoKeyOrThrowsCountsAsAMissingKey(String header, CapturedOutput output) {
        assertThat(get("/bean", header)).isEqualTo(200);
        assertThat(get("/bean", header)).isEqualTo(429);
        assertThat(server.http().from("127.0.0.9").get("/bean", header).status())
                .isEqualTo(200);
        assertThat(get("/bean/deny", header)).isEqualTo(403);
        for (int i = 0; i < 3; i++) {
            assertThat(get("/bean/skip", header)).isEqualTo(200);
        }
        boolean throwing = header.endsWith("throw") || header.endsWith("checked");
        assertThat(LogLines.of(output, "FailureLog").stream().filter(line -> line.contains("'bean-skip'")))
                .as("a line for three")
                .hasSize(throwing ? 1 : 0);
        assertThat(output).doesNotContain("secret");
    }

    @Test
    void anExpressionResolvesTheKey() {
        assertThat(get("/expression", "X-Plan: gold", "X-Key: one")).isEqualTo(200);
        assertThat(get("/expression", "X-Plan: gold", "X-Key: two")).isEqualTo(200);
        assertThat(get("/expression", "X-Plan: gold", "X-Key: one")).isEqualTo(429);
        assertThat(get("/expression", "X-Key: three")).as("by address").isEqualTo(200);
        assertThat(get("/expression", "X-Key: four")).as("by address").isEqualTo(429);
        assertThat(get("/expression", "X-Plan: gold"))
                .as("an address that stands in isn't one that was told")
                .isEqualTo(200);
    }

    @Test
    void anExpressionThatFailsCountsAsAMissingKey(CapturedOutput output) {
        assertThat(get("/expression/deny", "X-Key: one-a")).isEqualTo(200);
        assertThat(get("/expression/deny", "X-Key: one-b")).isEqualTo(429);
        assertThat(LogLines.of(output, "FailureLog")).isEmpty();

        assertThat(get("/expression/deny")).isEqualTo(403);
        assertThat(get("/expression/deny", "X-Key: hm")).isEqualTo(403);
        assertThat(LogLines.of(output, "FailureLog"))
                .containsExactly("Throttle policy 'expression-deny' could not determine the part"
                        + " 'expression:header('X-Key').substring(0, 3)' of its key, so it was missing"
                        + " (org.springframework.expression.spel.SpelEvaluationException"
                        + " METHOD_CALL_ON_NULL_OBJECT_NOT_ALLOWED), for its first request");
    }

    private static int get(String... targetAndHeaders) {
        String[] headers =
                List.of(targetAndHeaders).subList(1, targetAndHeaders.length).toArray(String[]::new);
        return server.http().get(targetAndHeaders[0], headers).status();
    }

    @RestController
    static class Api {

        @GetMapping({
            "/cookie",
            "/query",
            "/session",
            "/bean",
            "/bean/deny",
            "/bean/skip",
            "/expression",
            "/expression/deny",
            "/tenants/all",
            "/tenants/{other}/of/another/name"
        })
        String get() {
            return "got";
        }

        @PostMapping("/form")
        String form(HttpServletRequest request) throws IOException {
            return "raw " + new String(request.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }

        @GetMapping({"/tenants/{tenant}/items", "/tenants/{tenant}/orders"})
        String ofTenant(@PathVariable String tenant) {
            return tenant;
        }

        @GetMapping("/login")
        String login(HttpServletRequest request) {
            return request.getSession().getId();
        }

        @Bean
        KeyResolver tenantKey() {
            return request -> {
                String tenant = request.header("X-Tenant");
                if ("throw".equals(tenant)) {
                    throw new IllegalStateException("secret");
                }
                if ("checked".equals(tenant)) {
                    sneak(new IOException("secret"));
                }
                return "blank".equals(tenant) ? " \t" : tenant;
            };
        }

        /** Returns null, as a resolver in Kotlin may. */
        @SuppressWarnings("unchecked")
        private static <E extends Exception> void sneak(Exception checked) throws E {
            throw (E) checked;
        }
    }
}
