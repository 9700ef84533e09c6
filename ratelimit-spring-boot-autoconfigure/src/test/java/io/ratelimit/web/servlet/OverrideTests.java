package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@ExtendWith(OutputCaptureExtension.class)
class OverrideTests {

    private static final String YAML = """
            ratelimit:
              client-ip.trusted-proxies: 127.0.0.1
              policies:
                per-ip:
                  key: ip
                  rate: 1/1h
                  phase: before-authentication
                  paths: /ip
                  overrides:
                    - keys: [10.0.0.0/8, 2001:db8::1]
                      mode: off
                    - keys: 10.1.0.0/16
                      rate: 2/1h
                    - { keys: [10.1.2.3, '::1'], rate: 1/1h, capacity: 3 }
                    - keys: [192.0.2.0/24]
                      mode: shadow
                per-user:
                  key: user
                  rate: 1/1h
                  paths: /user
                  overrides:
                    - keys:
                        - auth0|123
                        - a,b
                        - " c "
                        - "\\U0001F600"
                        - "12"
                      rate: 3/1h
                per-user-and-endpoint:
                  key: [user, endpoint]
                  rate: 1/1h
                  paths: /export/**
                  overrides:
                    - keys:
                        - [alice, "GET /export/{id}"]
                        - ["bob, jr", "GET /export/{id}"]
                      rate: 2/1h
                    - keys:
                        - [alice, GET /export]
                      mode: off
                per-ip-and-endpoint:
                  key: [ip, endpoint]
                  rate: 1/1h
                  paths: /pair
                  phase: before-authentication
                  overrides:
                    - keys: [[10.0.0.0/8, GET /pair]]
                      rate: 3/1h
            """;

    @RegisterExtension
    static final TestServer server = TestServer.secured(YAML, BasicSecurity.class, Api.class);

    /** Returns how many of five requests are allowed. */
    private static long allowed(String path, String... headers) {
        long allowed = 0;
        for (int i = 0; i < 5; i++) {
            int status = server.http().get(path, headers).status();
            assertThat(status).isIn(200, 429);
            allowed += status == 200 ? 1 : 0;
        }
        return allowed;
    }

    private static String from(String address) {
        return "X-Forwarded-For: " + address;
    }

    @Test
    void usersBehindOneAddressHaveSeparateBuckets() {
        assertThat(allowed("/user", RawHttp.basic("carol"))).isEqualTo(1);
        assertThat(allowed("/user", RawHttp.basic("dave"))).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "203.0.113.1, 1",
        "11.0.0.0, 1",
        "10.0.0.1, 5",
        "::ffff:10.255.255.255, 5",
        "2001:db8::1, 5",
        "2001:db8::ffff:1, 5",
        "2001:db8:0:1::1, 1",
        "10.1.9.9, 2",
        "10.1.2.3, 3",
        "::1, 3",
        "192.0.2.7, 5",
    })
    void addressesAndNetworks(String address, long allowed) {
        String[] headers = {from(address), RawHttp.basic("alice")};
        assertThat(allowed("/ip", headers)).isEqualTo(allowed);
    }

    @Test
    void addressesOfANetworkHaveABucketEach() {
        String alice = RawHttp.basic("alice");
        assertThat(allowed("/ip", from("10.1.0.1"), alice)).isEqualTo(2);
        assertThat(allowed("/ip", from("10.1.0.2"), alice)).isEqualTo(2);
    }

    @Test
    void theHeadersShowTheLimitThatHolds() {
        String alice = RawHttp.basic("alice");
        assertThat(server.http().get("/ip", from("10.1.2.3"), alice).header("RateLimit-Policy"))
                .isEqualTo("\"per-ip\";q=3;w=10800");
        assertThat(server.http().get("/ip", from("10.0.0.1"), alice).header("RateLimit-Policy"))
                .isNull();
        assertThat(server.http().get("/ip", from("192.0.2.7"), alice).header("RateLimit-Policy"))
                .isNull();
    }

    @Test
    void usersWhateverTheirNames() {
        for (String user : List.of("auth0|123", "AUTH0|123", "a,b", "\ud83d\ude00", "12")) {
            server.refill();
            assertThat(allowed("/user", RawHttp.basic(user))).as(user).isEqualTo(3);
        }
        for (String user : List.of("auth0123", "a", "b", "c", "1,2")) {
            assertThat(allowed("/user", RawHttp.basic(user))).as(user).isEqualTo(1);
        }
    }

    @Test
    void composedKeys() {
        assertThat(allowed("/export/1", RawHttp.basic("alice"))).isEqualTo(2);
        assertThat(allowed("/export/1", RawHttp.basic("bob, jr"))).isEqualTo(2);
        assertThat(allowed("/export/1", RawHttp.basic("bob"))).isEqualTo(1);
        assertThat(allowed("/export", RawHttp.basic("alice"))).isEqualTo(5);
        assertThat(allowed("/export", RawHttp.basic("bob"))).isEqualTo(1);
    }

    @Test
    void composedKeysWithANetwork() {
        String alice = RawHttp.basic("alice");
        assertThat(allowed("/pair", from("10.1.2.3"), alice)).isEqualTo(3);
        assertThat(allowed("/pair", from("10.1.2.4"), alice)).isEqualTo(3);
        assertThat(allowed("/pair", from("11.1.2.4"), alice)).isEqualTo(1);
    }

    /** All endpoints of these overrides exist. */
    @Test
    void nothingIsLoggedForExistingEndpoints(CapturedOutput output) {
        try (TestServer again =
                TestServer.secured(YAML, BasicSecurity.class, Api.class).start()) {
            assertThat(again.bean(Endpoints.class).names()).contains("GET /export/{id}");
        }
        assertThat(output).doesNotContain("names the endpoint");
    }

    @Test
    void aRequestWithBadCredentialsHasNoOverrideOfAUser() {
        String bad = RawHttp.basic("auth0|123", "wrong");
        assertThat(server.http().get("/user", bad).status()).isEqualTo(401);
        assertThat(allowed("/user", RawHttp.basic("auth0|123"))).isEqualTo(3);
    }

    @RestController
    static class Api {

        @GetMapping({"/ip", "/user", "/export", "/export/{id}", "/pair"})
        String hello() {
            return "hello";
        }
    }
}
