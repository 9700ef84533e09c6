package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The property {@code ratelimit.headers}, and the headers of allowed responses. */
@Tag("slow")
class HeadersTests {

    private static final String YAML = """
            ratelimit:
              headers: %s
              policies:
                keyed: { key: ip, rate: 10/10s, paths: /keyed, cost: 2 }
                wide: { key: ip, rate: 100/1m, paths: /keyed }
                narrow: { key: [ip, endpoint], rate: 5/1h, paths: /two }
                scarce: { key: user, rate: 2/1h, paths: /two }
                global: { rate: 5/1m }
                missing: { key: header:X-Key, on-missing-key: deny, rate: 1/1h, paths: /missing, phase: after-authentication }
                before: { key: ip, rate: 7/1h, paths: /missing }
                endpoint: { key: endpoint, rate: 2/1h, paths: /shared }
                tenant: { key: header:X-Tenant, rate: 2/1h, paths: /shared }
                anyone: { key: user, on-missing-key: shared, rate: 3/1h, paths: /shared }
                session: { key: session, rate: 4/1h, paths: /shared }
                address: { key: ip, rate: 1000/1h, paths: /shared }
            """;

    @Test
    void draft11() {
        try (TestServer server = start("draft-11")) {
            Response allowed = server.http().get("/keyed");
            assertThat(allowed.header("RateLimit-Policy")).isEqualTo("\"keyed\";q=10;w=10");
            assertThat(allowed.header("RateLimit")).isEqualTo("\"keyed\";r=8;t=1");
            assertThat(allowed.names()).noneMatch(name -> name.startsWith("X-Rate") || name.startsWith("Retry"));

            Response global = server.http().get("/global");
            assertThat(global.status()).isEqualTo(200);
            assertThat(global.names())
                    .as("the load is nobody's business")
                    .noneMatch(name -> name.startsWith("RateLimit"));

            Response two = server.http().get("/two");
            assertThat(two.header("RateLimit"))
                    .as("of both phases: 1 of 2 is less than 4 of 5")
                    .isEqualTo("\"scarce\";r=1;t=1800");

            server.http().get("/two");
            Response refusal = server.http().get("/two");
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.header("RateLimit-Policy")).isEqualTo("\"scarce\";q=2;w=3600");
            assertThat(refusal.header("RateLimit"))
                    .as("in place of what the early phase had shown")
                    .isEqualTo("\"scarce\";r=0;t=1800");
        }
    }

    @Test
    void anAllowedResponseShowsNoPolicyThatGivesTheTokensOfASuccessBack() {
        try (TestServer server = TestServer.open("""
                ratelimit:
                  policies:
                    failed-logins: { key: ip, rate: 3/1h, refund-on: authenticated, phase: before-authentication }
                    mistakes: { key: ip, rate: 2/1h, refund-on: "2xx", phase: after-authentication }
                    outages: { key: ip, rate: 9/1h, refund-on: 5xx, phase: after-authentication }
                    all: { key: ip, rate: 20/1h }
                """, Api.class).start()) {
            assertThat(server.http().get("/two").header("RateLimit-Policy"))
                    .as("the narrower limits cost a client whose requests succeed nothing")
                    .isEqualTo("\"outages\";q=9;w=3600");
        }
    }

    @Test
    void aPolicyMayHaveOtherHeaders() {
        try (TestServer server = TestServer.open("""
                ratelimit:
                  policies:
                    early: { key: ip, rate: 9/1h, paths: /two, phase: before-authentication }
                    late: { key: ip, rate: 2/1h, paths: /two, phase: after-authentication, headers: x-ratelimit }
                    silent: { key: ip, rate: 1/1h, paths: /silent, headers: none }
                    shown: { key: [ip, method], rate: 5/1h, paths: /silent }
                """, Api.class).start()) {
            Response allowed = server.http().get("/two");
            assertThat(allowed.header("X-RateLimit-Remaining")).isEqualTo("1");
            assertThat(allowed.names())
                    .as("those that the early phase had set are removed")
                    .noneMatch(name -> name.startsWith("RateLimit"));
            server.http().get("/two");
            Response refusal = server.http().get("/two");
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.header("X-RateLimit-Limit")).isEqualTo("2");
            assertThat(refusal.names()).noneMatch(name -> name.startsWith("RateLimit"));

            assertThat(server.http().get("/silent").header("RateLimit"))
                    .as("the tightest of those with headers")
                    .isEqualTo("\"shown\";r=4;t=720");
            Response silent = server.http().get("/silent");
            assertThat(silent.status()).isEqualTo(429);
            assertThat(silent.header("Retry-After")).isEqualTo("3600");
            assertThat(silent.names()).noneMatch(name -> name.contains("RateLimit"));
        }
    }

    @Test
    void aRejectionByPoliciesWithDifferentHeadersHasBoth() {
        try (TestServer server = TestServer.open("""
                ratelimit:
                  headers: none
                  policies:
                    a: { key: ip, rate: 1/1h, paths: /two, headers: draft-11 }
                    b: { key: ip, rate: 1/1h, paths: /two, headers: x-ratelimit }
                    c: { key: ip, rate: 1/1h, paths: /two }
                """, Api.class).start()) {
            server.http().get("/two");
            Response refusal = server.http().get("/two");
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.header("RateLimit")).isEqualTo("\"a\";r=0;t=3600");
            assertThat(refusal.header("X-RateLimit-Limit")).isEqualTo("1");
        }
    }

    @Test
    void theLevelOfABucketThatClientsShareIsNotShown() {
        for (String headers : List.of("draft-11", "x-ratelimit")) {
            try (TestServer server = start(headers)) {
                String level = headers.equals("draft-11") ? "RateLimit" : "X-RateLimit-Remaining";
                Response allowed = server.http().get("/shared", "X-Tenant: acme");
                assertThat(allowed.status()).isEqualTo(200);
                assertThat(allowed.header(level)).isIn("\"session\";r=3;t=900", "3");
                Response other = server.http().from("127.0.0.2").get("/shared", "X-Tenant: acme");
                assertThat(other.header(level))
                        .as("no trace of the first client's request")
                        .isEqualTo(allowed.header(level));
                assertThat(server.http().get("/shared", "X-Tenant: acme").status())
                        .isEqualTo(429);
            }
        }
    }

    @Test
    void aRejectionForAMissingKeyShowsNoLimit() {
        try (TestServer server = start("draft-11")) {
            Response refusal = server.http().get("/missing");
            assertThat(refusal.status()).isEqualTo(403);
            assertThat(refusal.names())
                    .noneMatch(name ->
                            name.startsWith("RateLimit") || name.startsWith("X-Retry") || name.startsWith("Retry"));
            assertThat(refusal.body())
                    .isEqualTo("{\"title\":\"Forbidden\",\"status\":403,\"detail\":\"The request is denied by 'missing'"
                            + " policy, it lacks the key of the limit.\",\"violated-policies\":[\"missing\"]}");
            assertThat(server.available("before", "127.0.0.1")).as("given back").isEqualTo(7);
        }
    }

    @Test
    void xRateLimit() {
        try (TestServer server = start("x-ratelimit")) {
            Response allowed = server.http().get("/keyed");
            assertThat(allowed.header("X-RateLimit-Limit")).isEqualTo("10");
            assertThat(allowed.header("X-RateLimit-Remaining")).isEqualTo("8");
            assertThat(allowed.header("X-RateLimit-Reset")).isEqualTo("2");
            for (int i = 0; i < 4; i++) {
                server.http().get("/keyed");
            }
            Response refusal = server.http().get("/keyed");
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.header("X-RateLimit-Limit")).isEqualTo("10");
            assertThat(refusal.header("X-RateLimit-Remaining")).isEqualTo("0");
            assertThat(refusal.header("X-RateLimit-Reset")).isEqualTo("10");
            assertThat(refusal.header("Retry-After")).isEqualTo("12");
            assertThat(refusal.names()).noneMatch(name -> name.startsWith("RateLimit"));
        }
    }

    @Test
    void none() {
        try (TestServer server = start("none")) {
            for (int i = 0; i < 5; i++) {
                Response allowed = server.http().get("/keyed");
                assertThat(allowed.status()).isEqualTo(200);
                assertThat(allowed.names()).noneMatch(HeadersTests::isOurs);
            }
            Response refusal = server.http().get("/keyed");
            assertThat(refusal.status()).isEqualTo(429);
            assertThat(refusal.names().stream().filter(HeadersTests::isOurs))
                    .containsExactly("Retry-After", "X-RetryAfterMs");
        }
    }

    private static boolean isOurs(String header) {
        return header.contains("Rate") || header.contains("Retry");
    }

    private static TestServer start(String headers) {
        return TestServer.open(YAML.formatted(headers), Api.class).start();
    }

    @RestController
    static class Api {

        @GetMapping({"/keyed", "/two", "/global", "/missing", "/shared"})
        String hello() {
            return "hello";
        }
    }
}
