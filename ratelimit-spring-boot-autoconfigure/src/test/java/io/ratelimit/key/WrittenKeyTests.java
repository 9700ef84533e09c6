package io.ratelimit.key;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WrittenKeyTests {

    private static List<String> read(int ipv6Prefix, boolean ignoreCase, String parts, String... written) {
        List<KeyPart> key = Stream.of(parts.split(" ")).map(KeyPart::of).toList();
        return new WrittenKey(key, ignoreCase, ipv6Prefix, () -> List.of("GET /items", "GET,POST /Items/{id}"))
                .read(List.of(written));
    }

    /** What is written becomes what {@link ClientIp} makes of the address, and that is read as itself. */
    @ParameterizedTest
    @CsvSource({
        "64, 2001:db8:1:2:3::9", "48, 2001:db8:1:2:3::9", "128, 2001:db8:1:2:3::9", "56, 2001:db8:1:2ff::",
        "64, 192.0.2.7", "32, ::ffff:192.0.2.7", "64, ::1", "64, ::"
    })
    void anAddressIsThatOfTheRequestsThatComeFromIt(int prefix, String address) {
        String client = new ClientIp(List.of(), "x-forwarded-for", prefix).canonical(address);

        assertThat(read(prefix, true, "ip", address)).containsExactly(client);
        assertThat(read(prefix, true, "ip", client)).containsExactly(client);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "10.0.0.0/8",
                "192.0.2.7/24",
                "192.0.2.7:80",
                "[::1]",
                "fe80::1%eth0",
                "2001:db8::/32",
                "2001:db8::1/64",
                "example.org",
                "None",
                "192.0.2.07",
                "/",
                "::/65"
            })
    void whatIsNoClientIsRefusedAndNotRepeated(String written) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> read(64, true, "ip", written))
                .withMessage("the ip of the key must be an address, such as '192.0.2.7' or '2001:db8::1', or 'none' for"
                        + " what has none")
                .withNoCause();
    }

    @Test
    void anEndpointIsOneThatThereIs() {
        assertThat(read(64, true, "endpoint", "get /items")).containsExactly("get /items");
        assertThat(read(64, false, "endpoint", "GET,POST /Items/{id}")).containsExactly("GET,POST /Items/{id}");
        assertThat(read(64, true, "endpoint", "none")).containsExactly("none");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> read(64, false, "endpoint", "get /items"))
                .withMessageContaining("such as 'GET /items'");
        assertThatIllegalArgumentException().isThrownBy(() -> read(64, true, "endpoint", "GET /items/1"));
    }

    @Test
    void aMethodIsOneOfThoseThatAreToldApart() {
        assertThat(read(64, true, "method user header:a", "HEAD", "HEAD", "x")).containsExactly("GET", "HEAD", "x");
        assertThat(read(64, true, "method", "other")).containsExactly("other");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> read(64, true, "method", "BREW"))
                .withMessageContaining("must be one that HTTP defines, in capital letters")
                .withMessageNotContaining("BREW");
    }
}
