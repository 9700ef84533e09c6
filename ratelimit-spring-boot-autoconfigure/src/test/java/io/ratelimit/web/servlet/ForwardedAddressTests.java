package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** If the container or Spring takes the address from a header, the address is a text that the client chooses. */
class ForwardedAddressTests {

    private static final String YAML = """
            server.forward-headers-strategy: %s
            ratelimit:
              policies:
                ip: { key: ip, rate: 1/1h }
                paths: { rate: 1000/1h, paths: /hello }
            """;

    private static final List<String> GARBAGE = List.of(
            "$(x)",
            "unknown",
            "_hidden",
            "localhost",
            "example.com",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.256",
            "01.2.3.4",
            "1.2.3.4:5678x",
            "2001:db8::1::2",
            "2001:db8:0:0:0:0:0:0:1",
            "[2001:db8::1",
            "fe80",
            "::gggg",
            "\u00e4",
            "x".repeat(3000));

    @Test
    void framework() {
        try (TestServer server = start("framework")) {
            addressesAreReadAndGarbageIsOneKey(server);
            forwardedPrefixesAreNoWayRound(server);
        }
    }

    @Test
    void nativeOfTomcat() {
        try (TestServer server = start("native")) {
            addressesAreReadAndGarbageIsOneKey(server);
        }
    }

    private static void addressesAreReadAndGarbageIsOneKey(TestServer server) {
        assertThat(forwarded(server, "203.0.113.1")).isEqualTo(200);
        assertThat(forwarded(server, "203.0.113.2")).isEqualTo(200);
        assertThat(forwarded(server, "203.0.113.1")).isEqualTo(429);
        assertThat(forwarded(server, "::ffff:203.0.113.1")).as("mapped").isEqualTo(429);
        assertThat(forwarded(server, "::ffff:cb00:7101")).as("mapped").isEqualTo(429);
        assertThat(forwarded(server, "2001:db8:0:1::1")).isEqualTo(200);
        assertThat(forwarded(server, "2001:DB8:0:1:ffff::9")).as("same /64").isEqualTo(429);
        assertThat(forwarded(server, "2001:db8:0:1::203.0.113.1"))
                .as("same /64")
                .isEqualTo(429);
        assertThat(forwarded(server, "2001:db8:0:1::5%eth0")).as("same /64").isEqualTo(429);
        assertThat(forwarded(server, "2001:db8:0:2::1")).as("another /64").isEqualTo(200);

        server.refill();
        int allowed = 0;
        for (String garbage : GARBAGE) {
            int status = forwarded(server, garbage);
            assertThat(status).as(garbage).isIn(200, 400, 429);
            allowed += status == 200 ? 1 : 0;
        }
        assertThat(allowed)
                .as("one bucket for all that is no address, and perhaps that of the peer")
                .isBetween(1, 2);
    }

    private static void forwardedPrefixesAreNoWayRound(TestServer server) {
        List<String> reached = new ArrayList<>();
        for (String prefix : List.of("/x", "/x/", "//x", "/x;a=b", "/%61", "/x/..", "/", "/hello", "/{x}")) {
            server.refill();
            String body =
                    server.http().get("/hello", "X-Forwarded-Prefix: " + prefix).body();
            long left = server.available("paths");
            if (body.equals("hello")) {
                assertThat(left).as(prefix).isEqualTo(999);
                reached.add(prefix);
            }
        }
        assertThat(reached).contains("/x", "/hello");
    }

    private static int forwarded(TestServer server, String address) {
        return server.http().get("/hello", "X-Forwarded-For: " + address).status();
    }

    private static TestServer start(String strategy) {
        return TestServer.open(YAML.formatted(strategy), Api.class).start();
    }

    @RestController
    static class Api {

        @GetMapping("/hello")
        String hello() {
            return "hello";
        }
    }
}
