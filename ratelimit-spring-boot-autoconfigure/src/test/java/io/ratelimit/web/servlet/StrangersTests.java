package io.ratelimit.web.servlet;

import static io.ratelimit.web.servlet.RawHttp.basic;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Response;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Requests without an account, where accounts share buckets. */
class StrangersTests {

    @RegisterExtension
    static final TestServer server = TestServer.secured("""
            ratelimit:
              policies:
                global: { rate: 10/1h, paths: /shared }
                per-endpoint: { key: endpoint, rate: 10/1h, paths: /shared }
                per-tenant: { key: header:X-Tenant, rate: 10/1h, paths: /shared }
                per-query: { key: "expression:query('team')", rate: 10/1h, paths: /shared }
                guard: { rate: 3/1h, paths: /guarded, phase: before-authentication }
                per-ip: { key: ip, rate: 1000/1h }
                per-ip-and-tenant: { key: [ip, header:X-Tenant], rate: 2000/1h }
            """, Api.class, BasicSecurity.class);

    private static final String[] TENANT = {"X-Tenant: acme"};

    @Test
    void strangersDrainNothingThatAccountsShare() {
        for (int i = 0; i < 25; i++) {
            String[] credentials = i % 2 == 0 ? TENANT : new String[] {TENANT[0], basic("alice", "wrong")};
            Response refused = server.http().from("127.0.0.9").get("/shared?team=red", credentials);
            assertThat(refused.status()).isEqualTo(401);
            assertThat(refused.header("RateLimit")).startsWith("\"per-ip\";r=").doesNotContain(",");
        }
        assertThat(server.available("global")).isEqualTo(10);
        assertThat(server.available("per-endpoint", "GET /shared")).isEqualTo(10);
        assertThat(server.available("per-tenant", "acme")).isEqualTo(10);
        assertThat(server.available("per-query", "red")).isEqualTo(10);
        assertThat(server.available("per-ip", "127.0.0.9")).isEqualTo(975);
        assertThat(server.available("per-ip-and-tenant", "127.0.0.9", "acme")).isEqualTo(1975);

        for (int i = 0; i < 10; i++) {
            assertThat(alice().status()).as("request %d", i).isEqualTo(200);
        }
        assertThat(alice().status()).isEqualTo(429);
    }

    private static Response alice() {
        return server.http().get("/shared?team=red", TENANT[0], basic("alice"));
    }

    @Test
    void aGlobalPolicyGuardsTheAuthenticationWhereItsPhaseIsWritten() {
        for (int i = 0; i < 3; i++) {
            Response refused = server.http().get("/guarded");
            assertThat(refused.status()).isEqualTo(401);
            assertThat(refused.header("RateLimit")).doesNotContain("guard");
        }
        assertThat(server.http().get("/guarded", basic("alice")).status()).isEqualTo(429);
    }

    @RestController
    static class Api {

        @GetMapping({"/shared", "/guarded"})
        String hello() {
            return "hello";
        }
    }
}
