package io.ratelimit.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.web.servlet.RawHttp.Connection;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The proxies are 127.0.0.1 and 10.0.0.0/8. Every other address of this machine is a client. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class TrustedProxyTests {

    private static final String YAML = """
            server.max-http-request-header-size: 64KB
            ratelimit:
              client-ip.trusted-proxies: [127.0.0.1, 10.0.0.0/8, 'fd00::/8']
              policies:
                ip: { key: ip, rate: 2/1h }
            """;
    private static final int PROXYS_OWN = 2;

    @RegisterExtension
    static final TestServer server = TestServer.open(YAML, Api.class);

    private static String xff(String value) {
        return "X-Forwarded-For: " + value;
    }

    private static int get(String... headers) {
        return server.http().get("/hello", headers).status();
    }

    @Test
    void clientsOfAProxyAreDistinguished() {
        for (String client : List.of("203.0.113.1", "203.0.113.2", "[2001:db8::1]:443", "203.0.113.3:5678")) {
            assertThat(get(xff(client))).isEqualTo(200);
            assertThat(get(xff("9.9.9.9, " + client + ", 10.1.2.3"))).isEqualTo(200);
            assertThat(get(xff(client))).isEqualTo(429);
        }
        assertThat(server.available("ip", "203.0.113.3")).isZero();
        assertThat(server.available("ip", "9.9.9.9")).isEqualTo(2);
        assertThat(server.available("ip", "127.0.0.1")).isEqualTo(PROXYS_OWN);
    }

    @Test
    void severalHeadersAreOneList() {
        assertThat(get(xff("203.0.113.1"), xff("203.0.113.2, 10.1.1.1"), xff("10.1.1.2")))
                .isEqualTo(200);
        assertThat(server.available("ip", "203.0.113.2")).isEqualTo(1);
    }

    @Test
    void theFirstHopIsTheClientIfAllHopsAreTrusted() {
        assertThat(get(xff("10.1.1.1, fd00::2, 10.1.1.3"))).isEqualTo(200);
        assertThat(server.available("ip", "10.1.1.1")).isEqualTo(1);
    }

    @Test
    void tenThousandAddressesOfOneNetworkShareABucket() {
        int allowed = 0;
        try (Connection connection = server.http().open()) {
            for (int i = 0; i < 10_000; i++) {
                String address = "2001:db8:1:2:" + Integer.toHexString(i) + "::" + Integer.toHexString(i * 7 & 0xffff);
                allowed += connection.get("/hello", xff(address)).status() == 200 ? 1 : 0;
            }
        }
        assertThat(allowed).isEqualTo(2);
        assertThat(get(xff("2001:db8:1:3::1"))).as("another network").isEqualTo(200);
    }

    @Test
    void anUntrustedPeerCannotNameAnotherClient() {
        RawHttp stranger = server.http().from("127.0.0.9");
        for (int i = 0; i < 4; i++) {
            String sent = "203.0.113." + i;
            assertThat(stranger.get("/hello", xff(sent), "Forwarded: for=" + sent, "X-Real-IP: " + sent)
                            .status())
                    .isEqualTo(i < 2 ? 200 : 429);
            assertThat(server.available("ip", sent)).isEqualTo(2);
        }
    }

    /** The client is neither the address before the hop nor the text, because a client can choose both. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "unknown",
                "_hidden",
                "",
                "$(x)",
                "localhost",
                "example.com",
                "1.2.3",
                "1.2.3.256",
                "01.2.3.4",
                "1.2.3.4:x",
                "2001:db8::1::2",
                "[2001:db8::1",
                "for=1.2.3.4",
                "1.2.3.4 5.6.7.8",
            })
    void aHopThatCannotBeReadIsTheLastTrustedPeer(String hop) {
        assertThat(get(xff("203.0.113.1, " + hop))).isEqualTo(200);
        assertThat(server.available("ip", "127.0.0.1")).isEqualTo(PROXYS_OWN - 1);
        assertThat(get(xff("203.0.113.1, " + hop + ", 10.1.1.1"))).isEqualTo(200);
        assertThat(server.available("ip", "10.1.1.1")).isEqualTo(1);
        assertThat(server.available("ip", "203.0.113.1")).isEqualTo(2);
    }

    @Test
    void endlessHeadersAreReadFromTheirEnd() {
        assertThat(get(xff(",".repeat(4000)))).isEqualTo(200);
        assertThat(get(xff("x".repeat(3000)))).isEqualTo(200);
        assertThat(server.available("ip", "127.0.0.1")).isEqualTo(PROXYS_OWN - 2);
        assertThat(get(xff("203.0.113.1,".repeat(4000) + "203.0.113.2"))).isEqualTo(200);
        assertThat(server.available("ip", "203.0.113.2")).isEqualTo(1);
    }

    @Test
    void onlyTheHeaderThatIsConfiguredIsRead() {
        for (String header : List.of("Forwarded: for=203.0.113.1", "CF-Connecting-IP: 203.0.113.1")) {
            assertThat(get(header)).isEqualTo(200);
        }
        assertThat(get("X-Real-IP: 203.0.113.1")).isEqualTo(429);
    }

    @Test
    void forwardedOfRfc7239() {
        try (TestServer forwarded = started("trusted-proxies: 127.0.0.0/30, header: Forwarded")) {
            String[] headers = {
                "Forwarded: for=9.9.9.9;host=\"a, b\"",
                "forwarded: For=\"[2001:db8:1:2::3]:443\";proto=https, for=127.0.0.2;by=_me"
            };
            assertThat(forwarded.http().get("/hello", headers).status()).isEqualTo(200);
            assertThat(forwarded.available("ip", "2001:db8:1:2::/64")).isEqualTo(1);
            forwarded.http().get("/hello", "Forwarded: for=9.9.9.9, for=_hidden", xff("9.9.9.9"));
            assertThat(forwarded.available("ip", "127.0.0.1")).isEqualTo(1);
            assertThat(forwarded.available("ip", "9.9.9.9")).isEqualTo(2);
        }
    }

    @Test
    void aHeaderWithOneAddressAndAnotherPrefix() {
        try (TestServer cloud = started("trusted-proxies: 127.0.0.1, header: cf-connecting-ip, ipv6-prefix: 48")) {
            cloud.http().get("/hello", "CF-Connecting-IP: 2001:db8:1:2::3", xff("9.9.9.9"));
            cloud.http().get("/hello", "CF-Connecting-IP: 2001:db8:1:9::9");
            assertThat(cloud.http()
                            .get("/hello", "CF-Connecting-IP: 2001:db8:1::")
                            .status())
                    .isEqualTo(429);
            assertThat(cloud.available("ip", "2001:db8:1::/48")).isZero();
            cloud.http().get("/hello", "CF-Connecting-IP: 9.9.9.9, 8.8.8.8");
            cloud.http().get("/hello", "CF-Connecting-IP: 9.9.9.9", "CF-Connecting-IP: 8.8.8.8");
            assertThat(cloud.available("ip", "127.0.0.1")).isZero();
        }
    }

    /** The server then treats 203.0.113.9 as the peer, and removes the header. */
    @Test
    void thePeerIsTheServersAnswerIfTheServerReadsTheHeader() {
        try (TestServer both = TestServer.open(YAML + "server.forward-headers-strategy: native\n", Api.class)
                .start()) {
            both.http().get("/hello", xff("203.0.113.1, 203.0.113.9"));
            assertThat(both.available("ip", "203.0.113.9")).isEqualTo(1);
            both.http().get("/hello", xff("203.0.113.9:5678"));
            assertThat(both.available("ip", "203.0.113.9")).isZero();
        }
    }

    /** Tomcat resolves each hop, and so treats the name of this machine as an internal proxy. The docs warn of this. */
    @Test
    void aServerThatReadsTheHeaderResolvesNames() {
        try (TestServer both = TestServer.open(YAML + "server.forward-headers-strategy: native\n", Api.class)
                .start()) {
            both.http().get("/hello", xff("203.0.113.9, localhost"));
            assertThat(both.available("ip", "203.0.113.9")).isEqualTo(1);
        }
    }

    @Test
    void springResolvesNoNameOfTheHeader() {
        String yaml = "{ server.forward-headers-strategy: framework, ratelimit.policies.ip: { key: ip, rate: 2/1h } }";
        try (TestServer framework = TestServer.open(yaml, Api.class).start()) {
            framework.http().get("/hello", xff("localhost"));
            assertThat(framework.available("ip", "none")).isEqualTo(1);
            assertThat(framework.available("ip", "127.0.0.1")).isEqualTo(2);
        }
    }

    @Test
    void ignoredHeadersAreLoggedOnceAndWithoutTheirValues(CapturedOutput output) {
        try (TestServer closed = started("ipv6-prefix: 64")) {
            closed.http().get("/hello");
            assertThat(output).doesNotContain("Ignoring X-Forwarded-For");
            closed.http().get("/hello", xff("203.0.113.77"));
            closed.http().get("/hello", xff("203.0.113.77"), "Forwarded: for=203.0.113.77");
        }
        assertThat(output.getAll().split("Ignoring X-Forwarded-For", -1)).hasSize(2);
        assertThat(output).contains("ratelimit.client-ip.trusted-proxies").doesNotContain("203.0.113.77");
    }

    @Test
    void headersFromPeersOutsideTheTrustedNetworksAreLoggedOnce(CapturedOutput output) {
        try (TestServer proxied = started("trusted-proxies: 127.0.0.1")) {
            proxied.http().get("/hello", xff("203.0.113.77"));
            assertThat(output).doesNotContain("Ignoring X-Forwarded-For");
            proxied.http().from("127.0.0.2").get("/hello", xff("203.0.113.77"));
            proxied.http().from("127.0.0.3").get("/hello", xff("203.0.113.77"));
        }
        assertThat(output.getAll().split("Ignoring X-Forwarded-For", -1)).hasSize(2);
    }

    @Test
    void nothingIsLoggedWhereNoPolicyCountsByIp(CapturedOutput output) {
        String yaml = "ratelimit.policies.site: { rate: 5/1h }";
        try (TestServer site = TestServer.open(yaml, Api.class).start()) {
            site.http().get("/hello", xff("203.0.113.77"));
        }
        assertThat(output).doesNotContain("Ignoring X-Forwarded-For");
    }

    private static TestServer started(String clientIp) {
        return TestServer.open(
                        "ratelimit: { client-ip: { " + clientIp + " }, policies: { ip: { key: ip, rate: 2/1h } } }",
                        Api.class)
                .start();
    }

    @RestController
    static class Api {

        @GetMapping("/hello")
        String hello() {
            return "hello";
        }
    }
}
