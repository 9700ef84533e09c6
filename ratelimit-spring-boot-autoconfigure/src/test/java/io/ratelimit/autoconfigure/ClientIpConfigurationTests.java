package io.ratelimit.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** What is said at the start of {@code ratelimit.client-ip}. */
@ExtendWith(OutputCaptureExtension.class)
class ClientIpConfigurationTests {

    private static final String POLICY = "ratelimit.policies.api: { rate: 5/s, key: ip }\n";

    @TempDir
    private Path directory;

    private CapturedOutput output;

    @BeforeEach
    void capture(CapturedOutput output) {
        this.output = output;
    }

    @Test
    void aNetworkThatIsNoneIsNamedByItsPlaceInTheList() {
        assertThat(failure("ratelimit:\n  client-ip:\n    trusted-proxies: [10.0.0.0/8, proxy.example.com]"))
                .isEqualTo("""
                Description:

                Failed to bind properties under 'ratelimit.client-ip.trusted-proxies[1]' to io.ratelimit.key.IpNetwork:

                    Property: ratelimit.client-ip.trusted-proxies[1]
                    Value: "proxy.example.com"
                    Origin: URL [file:application.yml] - 3:35
                    Reason: failed to convert java.lang.String to io.ratelimit.key.IpNetwork (caused by \
                java.lang.IllegalArgumentException: 'proxy.example.com' is neither an address nor a network: say \
                '10.0.0.0/8', '192.0.2.7' or '2001:db8::/32', for example; names are not resolved)

                Action:

                Update your application's configuration""");
    }

    @Test
    void bitsBehindThePrefixAreRefusedWithWhatIsMeant() {
        assertThat(failure("ratelimit.client-ip.trusted-proxies: 10.0.0.1/8"))
                .contains("Property: ratelimit.client-ip.trusted-proxies\n", "application.yml] - 1:38")
                .contains("'10.0.0.1/8' has bits behind its prefix: say '10.0.0.0/8', or '10.0.0.1' for the one"
                        + " address");
    }

    @Test
    void aNumberIsNoNetwork() {
        assertThat(failure("ratelimit.client-ip.trusted-proxies: [10]"))
                .contains("Property: ratelimit.client-ip.trusted-proxies[0]\n")
                .contains("'10' is neither an address nor a network: say '10.0.0.0/8'");
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 0, 31, 129})
    void aPrefixOutsideItsDomain(int prefix) {
        assertThat(webFailure(POLICY + "ratelimit.client-ip.ipv6-prefix: " + prefix))
                .contains("Invalid value '" + prefix + "' for configuration property"
                        + " 'ratelimit.client-ip.ipv6-prefix' (originating from 'URL [file:application.yml] - 2:34')")
                .contains("ipv6-prefix must be between 32 and 128, but was " + prefix);
    }

    @ParameterizedTest
    @ValueSource(strings = {"x forwarded for", "'x-forwarded-for:'", "''", "ä"})
    void aHeaderThatIsNoName(String header) {
        assertThat(webFailure(POLICY + "ratelimit.client-ip.header: " + header))
                .contains("for configuration property 'ratelimit.client-ip.header'")
                .contains("header must be the name of a header, such as 'x-forwarded-for'");
    }

    @Test
    void anUnknownProperty() {
        assertThat(failure("ratelimit.client-ip.proxies: 10.0.0.0/8"))
                .endsWith(
                        "exclude-paths, client-ip, filter, redis, policies.\nBelow 'client-ip' there are: trusted-proxies, header,"
                                + " ipv6-prefix.");
    }

    @Test
    void theLogSaysWhoMayNameAClient() {
        assertThat(log(POLICY + "ratelimit.client-ip: { trusted-proxies: '10.0.0.0/8,::1', header: Forwarded }"))
                .hasSize(2)
                .endsWith("INFO A client's address is taken from 'Forwarded' where the peer is in 10.0.0.0/8,"
                        + " 0:0:0:0:0:0:0:1/128");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0.0.0.0/0", "::/0"})
    void warnsWhereAnybodyMayNameAClient(String network) {
        assertThat(log(POLICY + "ratelimit.client-ip.trusted-proxies: ['" + network + "', 10.0.0.0/8]"))
                .hasSize(3)
                .endsWith("WARN 'ratelimit.client-ip.trusted-proxies' has '" + network
                        + "', which trusts whoever sends 'x-forwarded-for': clients can choose the address that throttle"
                        + " policies count by. Say the network of your proxies");
    }

    @ParameterizedTest
    @CsvSource({
        "server.forward-headers-strategy: native, native, the server, 3",
        "server.forward-headers-strategy: NATIVE, native, the server, 3",
        "server.forward-headers-strategy: framework, framework, Spring, 4",
        "spring.main.cloud-platform: kubernetes, native, the server, 3",
    })
    void warnsWhereForwardingHeadersHaveTwoReaders(String line, String strategy, String reader, int lines) {
        assertThat(log(POLICY + "ratelimit.client-ip.trusted-proxies: 10.0.0.0/8\n" + line))
                .hasSize(lines)
                .contains(
                        "WARN 'ratelimit.client-ip.trusted-proxies' is set, but with 'server.forward-headers-strategy:"
                                + " " + strategy + "' " + reader
                                + " reads forwarding headers first: whom it believes decides,"
                                + " and the address that is compared with trusted-proxies is the client's. Say"
                                + " 'server.forward-headers-strategy: none', or remove trusted-proxies");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "server.forward-headers-strategy: none",
                "{ server.forward-headers-strategy: none, spring.main.cloud-platform: kubernetes }",
                "spring.main.cloud-platform: none",
            })
    void doesNotWarnOfOneReader(String lines) {
        assertThat(log("ratelimit: { policies: { api: { rate: 5/s, key: ip } },"
                        + " client-ip: { trusted-proxies: 10.0.0.0/8 } }\n"
                        + lines.replaceAll("[{}]", "").strip().replace(", ", "\n")))
                .hasSize(2)
                .allMatch(line -> line.startsWith("INFO "));
    }

    private String failure(String yaml) {
        return new YamlApplication(directory, yaml).failure(output);
    }

    private String webFailure(String yaml) {
        return new YamlApplication(directory, yaml).withWeb().failure(output);
    }

    private List<String> log(String yaml) {
        return new YamlApplication(directory, yaml).withWeb().log(output);
    }
}
