package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.autoconfigure.CapturedStart;
import io.ratelimit.autoconfigure.YamlApplication;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The lines of the start-up log about {@code ratelimit.client-ip}. */
class ClientIpConfigurationTests extends CapturedStart {

    private static final String POLICY = "ratelimit.policies.api: { rate: 5/s, key: ip }\n";

    @Test
    void theLogNamesTheTrustedProxies() {
        assertThat(log(POLICY + "ratelimit.client-ip: { trusted-proxies: '10.0.0.0/8,::1', header: Forwarded }"))
                .hasSize(2)
                .first()
                .asString()
                .endsWith("; client address from 'Forwarded' of peers in 10.0.0.0/8, 0:0:0:0:0:0:0:1/128");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0.0.0.0/0", "::/0"})
    void warnsIfEveryPeerMayNameAClient(String network) {
        assertThat(log(POLICY + "ratelimit.client-ip.trusted-proxies: ['" + network + "', 10.0.0.0/8]"))
                .hasSize(3)
                .endsWith("WARN 'ratelimit.client-ip.trusted-proxies' has '" + network
                        + "', which trusts 'x-forwarded-for' from every peer: clients can choose the address that"
                        + " throttle policies use as key. Set the network of your proxies");
    }

    @Test
    void warnsOfAHeaderThatNoPeerMaySet() {
        assertThat(log(POLICY + "ratelimit.client-ip.header: X-Real-IP"))
                .contains(
                        "WARN 'ratelimit.client-ip.header' is set, but not 'ratelimit.client-ip.trusted-proxies': the header"
                                + " is ignored, and all clients of a proxy share one bucket. Set the networks of your proxies");
        assertThat(log(POLICY + "ratelimit.client-ip.header: X-Real-IP\nserver.forward-headers-strategy: native"))
                .noneMatch(line -> line.contains("client-ip.header"));
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
                                + " reads forwarding headers first, by its own rules of trust, and trusted-proxies"
                                + " is compared with the client's address. Set 'server.forward-headers-strategy:"
                                + " none', or remove trusted-proxies");
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

    private List<String> log(String yaml) {
        return new YamlApplication(directory, yaml).withWeb().log(output);
    }
}
