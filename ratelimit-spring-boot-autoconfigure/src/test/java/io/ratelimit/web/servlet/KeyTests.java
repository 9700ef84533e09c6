package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Keys from the method, the headers and the client of a request. */
class KeyTests {

    private static final String YAML = """
            server.max-http-request-header-size: 64KB
            ratelimit:
              policies:
                header: { key: header:X-Key, rate: 1/1h, paths: /header }
                cased: { key: header:X-Key, ignore-case: false, rate: 1/1h, paths: /cased }
                shared: { key: header:X-Key, on-missing-key: shared, rate: 1/1h, paths: /shared }
                deny: { key: header:X-Key, on-missing-key: deny, rate: 1/1h, paths: /deny }
                skip: { key: header:X-Key, on-missing-key: skip, rate: 1/1h, paths: /skip }
                pair: { key: [header:X-A, header:X-B], rate: 1/1h, paths: /pair }
                ip: { key: ip, rate: 1/1h, paths: /ip }
                user: { key: user, rate: 1/1h, paths: /user }
                method: { key: method, rate: 100/1h, paths: /method }
                endpoint: { key: endpoint, rate: 100/1h }
                gets: { rate: 100/1h, methods: GET }
                posts: { rate: 100/1h, methods: [POST, HEAD] }
                any: { rate: 100/1h }
                deny-in-shadow: { key: header:X-Key, on-missing-key: deny, mode: shadow, rate: 1/1h, paths: /header }
            """;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    @Test
    void theFirstValueOfAHeaderCountsInAnyCase() {
        assertThat(get("/header", "X-Key: one")).isEqualTo(200);
        assertThat(get("/header", "X-Key: two")).isEqualTo(200);
        assertThat(get("/header", "x-key: ONE")).isEqualTo(429);
        assertThat(get("/header", "X-KEY:   one  ")).isEqualTo(429);
        assertThat(get("/header", "X-Key: one", "X-Key: fresh")).isEqualTo(429);
        assertThat(get("/header", "X-Key: fresh", "X-Key: one")).isEqualTo(200);
    }

    @Test
    void caseCountsWhereThePolicyIsConfiguredSo() {
        assertThat(get("/cased", "X-Key: one")).isEqualTo(200);
        assertThat(get("/cased", "X-Key: ONE")).isEqualTo(200);
        assertThat(get("/cased", "X-Key: one")).isEqualTo(429);
    }

    @Test
    void longValuesAreComparedToTheirEnd() {
        String value = "x".repeat(8000);
        assertThat(get("/header", "X-Key: " + value + "1")).isEqualTo(200);
        assertThat(get("/header", "X-Key: " + value + "2")).isEqualTo(200);
        assertThat(get("/header", "X-Key: " + value + "1")).isEqualTo(429);
        assertThat(get("/header", "X-Key: " + value)).isEqualTo(200);
    }

    @Test
    void theAddressIsThePlaceholderOfAMissingKey() {
        RawHttp other = server.http().from("127.0.0.9");
        for (String[] missing : new String[][] {{}, {"X-Key:"}, {"X-Key:    "}, {"X-Key: \t"}}) {
            server.refill();
            assertThat(get("/header")).isEqualTo(200);
            assertThat(get("/header", missing)).isEqualTo(429);
            assertThat(other.get("/header", missing).status()).isEqualTo(200);
        }
    }

    @Test
    void noSentValueEqualsAPlaceholder() {
        assertThat(get("/header")).isEqualTo(200);
        assertThat(get("/header", "X-Key: 127.0.0.1")).isEqualTo(200);
        assertThat(get("/header", "X-Key: s127.0.0.1")).isEqualTo(200);
        assertThat(get("/header", "X-Key: \1s127.0.0.1")).isIn(200, 400);
        assertThat(get("/header")).isEqualTo(429);

        assertThat(get("/shared")).isEqualTo(200);
        assertThat(get("/shared", "X-Key: s")).isEqualTo(200);
        assertThat(get("/shared", "X-Key: shared")).isEqualTo(200);
    }

    @Test
    void missingKeysMayShareABucket() {
        assertThat(get("/shared")).isEqualTo(200);
        assertThat(server.http().from("127.0.0.9").get("/shared").status()).isEqualTo(429);
        assertThat(get("/shared", "X-Key: one")).isEqualTo(200);
    }

    @Test
    void missingKeysMayBeDenied() {
        Response refusal = server.http().get("/deny");
        assertThat(refusal.status()).isEqualTo(403);
        assertThat(refusal.names()).doesNotContain("Retry-After", "X-RetryAfterMs", "RateLimit", "RateLimit-Policy");
        assertThat(refusal.header("Cache-Control")).isEqualTo("no-store");
        assertThat(refusal.body())
                .contains("\"status\":403")
                .contains("[\"deny\"]")
                .doesNotContain("retry");
        assertThat(server.available("endpoint", "/deny"))
                .as("a refused request costs the others nothing")
                .isEqualTo(100);

        assertThat(get("/deny", "X-Key: one")).isEqualTo(200);
        assertThat(get("/deny", "X-Key: one")).isEqualTo(429);
        assertThat(get("/deny", "X-Key: ")).isEqualTo(403);
    }

    @Test
    void missingKeysMayBeLetThrough() {
        for (int i = 0; i < 5; i++) {
            assertThat(get("/skip")).isEqualTo(200);
        }
        assertThat(get("/skip", "X-Key: one")).isEqualTo(200);
        assertThat(get("/skip", "X-Key: one")).isEqualTo(429);
    }

    @Test
    void composedKeysCantBeConfused() {
        List<String[]> pairs = List.of(
                new String[] {"X-A: a", "X-B: bc"},
                new String[] {"X-A: ab", "X-B: c"},
                new String[] {"X-A: a:b", "X-B: c"},
                new String[] {"X-A: a", "X-B: b:c"},
                new String[] {"X-A: 1:a", "X-B: 1:b"},
                new String[] {"X-A: a1:b", "X-B: x"},
                new String[] {"X-A: x"},
                new String[] {"X-B: x"},
                new String[] {"X-A: x", "X-B: 127.0.0.1"},
                new String[] {"X-A: 127.0.0.1", "X-B: x"},
                new String[] {"X-A: bc", "X-B: a"},
                new String[] {});
        for (String[] pair : pairs) {
            assertThat(get("/pair", pair)).as(String.join(", ", pair)).isEqualTo(200);
        }
        for (String[] pair : pairs) {
            assertThat(get("/pair", pair)).as(String.join(", ", pair)).isEqualTo(429);
        }
    }

    @Test
    void clientsAreDistinguishedByAddressAndForwardingHeadersAreIgnored() {
        assertThat(get("/ip")).isEqualTo(200);
        assertThat(server.http().from("127.0.0.9").get("/ip").status()).isEqualTo(200);
        assertThat(get("/ip")).isEqualTo(429);
        assertThat(get("/ip", "X-Forwarded-For: 1.2.3.4")).isEqualTo(429);
        assertThat(get("/ip", "Forwarded: for=1.2.3.4", "X-Real-IP: 1.2.3.4", "CF-Connecting-IP: 1.2.3.4"))
                .isEqualTo(429);
    }

    @Test
    void theAddressReplacesTheUserWithoutAuthentication() {
        assertThat(get("/user")).isEqualTo(200);
        assertThat(get("/user", RawHttp.basic("alice"))).isEqualTo(429);
        assertThat(server.http().from("127.0.0.9").get("/user").status()).isEqualTo(200);
    }

    @Test
    void inventedMethodsAreOneAndHeadIsGet() {
        for (String method : List.of("FOO1", "FOO2", "get", "PROPFIND", "GETT", "OTHER", "X".repeat(2000))) {
            assertThat(server.http().request(method, "/method").status())
                    .as(method)
                    .isNotEqualTo(429);
        }
        assertThat(server.available("method", "other")).isEqualTo(100 - 7);
        server.http().request("HEAD", "/method");
        server.http().request("GET", "/method");
        assertThat(server.available("method", "GET")).isEqualTo(98);
        for (String method : List.of("POST", "PUT", "PATCH", "DELETE", "OPTIONS")) {
            server.http().request(method, "/method");
            assertThat(server.available("method", method)).as(method).isEqualTo(99);
        }
    }

    @Test
    void aPolicyForGetIsOneForHeadAndAPolicyWithoutMethodsIsForAllThatAnyoneInvents() {
        for (String method : List.of("GET", "HEAD", "POST", "DELETE", "FOO", "get")) {
            server.http().request(method, "/method");
        }
        assertThat(server.available("gets")).as("GET and HEAD").isEqualTo(98);
        assertThat(server.available("posts")).as("POST and HEAD").isEqualTo(98);
        assertThat(server.available("any")).isEqualTo(94);
    }

    @Test
    void anEndpointIsThePatternAndTheMethodsOfItsMapping() {
        server.http().get("/items/1");
        server.http().get("/items/2?x=y");
        server.http().request("HEAD", "/items/3");
        assertThat(server.available("endpoint", "GET /items/{id}")).isEqualTo(97);
        server.http().request("DELETE", "/items/1");
        assertThat(server.available("endpoint", "DELETE /items/{id}")).isEqualTo(99);
        server.http().post("/login");
        assertThat(server.available("endpoint", "POST /login")).isEqualTo(99);
    }

    @Test
    void requestsWithoutAnEndpointShareABucket() {
        for (String target : List.of("/unknown", "/unknown/2", "/items", "/items/1/2", "/", "/login.json", "/LOGIN")) {
            assertThat(server.http().get(target).status()).as(target).isEqualTo(404);
        }
        assertThat(server.http().get("/login").status()).isEqualTo(405);
        assertThat(server.http().request("FOO", "/login").status()).isEqualTo(405);
        assertThat(server.http().request("FOO", "/items/1").status()).isEqualTo(405);
        assertThat(server.available("endpoint", "none")).isEqualTo(100 - 10);
    }

    @Test
    void inventedMethodsThatReachAHandlerAreChargedToItsEndpoint() {
        assertThat(server.http().request("FOO1", "/method").body()).isEqualTo("hello");
        assertThat(server.http().request("FOO2", "/method").body()).isEqualTo("hello");
        assertThat(server.available("endpoint", "/method")).isEqualTo(98);
    }

    private static int get(String path, String... headers) {
        return server.http().get(path, headers).status();
    }

    @RestController
    static class Api {

        @RequestMapping({"/header", "/cased", "/shared", "/deny", "/skip", "/pair", "/ip", "/user", "/method"})
        String hello() {
            return "hello";
        }

        @PostMapping("/login")
        String login() {
            return "login";
        }

        @GetMapping("/items/{id}")
        String item() {
            return "item";
        }

        @DeleteMapping("/items/{id}")
        String delete() {
            return "deleted";
        }
    }
}
