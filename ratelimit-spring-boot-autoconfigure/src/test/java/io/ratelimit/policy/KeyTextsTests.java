package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.key.KeyPart;
import io.ratelimit.key.OverrideTable.Match;
import io.ratelimit.key.ip.ClientIp;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class KeyTextsTests {

    private static KeyTexts texts(String parts) {
        return texts(64, true, parts);
    }

    private static KeyTexts texts(int ipv6Prefix, boolean ignoreCase, String parts) {
        return new KeyTexts(Stream.of(parts.split(" ")).map(KeyPart::of).toList(), ignoreCase, ipv6Prefix);
    }

    private static List<String> parse(int ipv6Prefix, boolean ignoreCase, String parts, String... texts) {
        return texts(ipv6Prefix, ignoreCase, parts)
                .parse(List.of(texts), List.of("GET /items", "GET,POST /Items/{id}"));
    }

    /** The canonical form is that of {@link ClientIp}, and parsing it again changes nothing. */
    @ParameterizedTest
    @CsvSource({
        "64, 2001:db8:1:2:3::9", "48, 2001:db8:1:2:3::9", "128, 2001:db8:1:2:3::9", "56, 2001:db8:1:2ff::",
        "64, 192.0.2.7", "32, ::ffff:192.0.2.7", "64, ::1", "64, ::"
    })
    void anAddressIsParsedToTheCanonicalFormOfRequests(int prefix, String address) {
        String client = new ClientIp(List.of(), "x-forwarded-for", prefix).canonical(address);

        assertThat(parse(prefix, true, "ip", address)).containsExactly(client);
        assertThat(parse(prefix, true, "ip", client)).containsExactly(client);
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
    void aTextThatIsNoClientIsRejectedAndNotQuoted(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse(64, true, "ip", text))
                .withMessage("the ip of the key must be an address, such as '192.0.2.7' or '2001:db8::1', or 'none' for"
                        + " requests without one")
                .withNoCause();
    }

    @Test
    void anEndpointIsOneOfTheApplications() {
        assertThat(parse(64, true, "endpoint", "get /items")).containsExactly("get /items");
        assertThat(parse(64, false, "endpoint", "GET,POST /Items/{id}")).containsExactly("GET,POST /Items/{id}");
        assertThat(parse(64, true, "endpoint", "none")).containsExactly("none");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse(64, false, "endpoint", "get /items"))
                .withMessageContaining("such as 'GET /items'");
        assertThatIllegalArgumentException().isThrownBy(() -> parse(64, true, "endpoint", "GET /items/1"));
    }

    @Test
    void aMethodIsOneThatHttpDefinesOrOther() {
        assertThat(parse(64, true, "method user header:a", "HEAD", "HEAD", "x")).containsExactly("GET", "HEAD", "x");
        assertThat(parse(64, true, "method", "other")).containsExactly("other");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse(64, true, "method", "BREW"))
                .withMessageContaining("must be one that HTTP defines, in capital letters")
                .withMessageNotContaining("BREW");
    }

    @Test
    void aKeyHasATextForEachPart() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> parse(64, true, "ip user", "a"))
                .withMessage("pass 2 'key's (ip, user), not 1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> KeyTexts.checkSize(List.of(), 1))
                .withMessage("the policy is global: it has one bucket and no 'key'");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "ip     | 10.0.0.1/8        | '10.0.0.1/8' has bits after its prefix: write '10.0.0.0/8', or '10.0.0.1' for the one address",
                "ip     | alice             | 'alice' is neither an address nor a network: write '10.0.0.0/8', '192.0.2.7' or '2001:db8::/32', for example; names are not resolved",
                "ip     | 2001:db8:1:2::/65 | '2001:db8:1:2::/65' is smaller than the network of one client: write '2001:db8:1:2::/64', or raise 'ratelimit.client-ip.ipv6-prefix'",
                "user   | ~ ~               | user must be more than blanks",
                "method | get               | 'get' is not an HTTP method: write 'GET', for example, or 'other' for all methods that HTTP doesn't define",
            })
    void anOverrideThatNoRequestMatchesIsRejected(String part, String text, String message) {
        KeyTexts keys = texts(part);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> keys.parseOverride(List.of(text)))
                .withMessage(message);
    }

    @Test
    void anOverrideHasATextForEachPart() {
        KeyTexts pair = texts("ip user");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> pair.parseOverride(List.of("10.0.0.0/8")))
                .withMessage("each of 'keys' must be a list of 2 texts: [ip, user], as the policy's key is, but was one"
                        + " text: write 'keys: [[192.0.2.7, bob]]', for example");
        KeyTexts one = texts("user");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> one.parseOverride(List.of("a", "b")))
                .withMessage("each of 'keys' must be one text, the user, as the policy's key is, but was a list of 2:"
                        + " write 'keys: [bob]', for example");
    }

    @Test
    void eachSpellingOfAnAddressIsTheSameOverride() {
        KeyTexts ip = texts("ip");
        Match v4 = ip.parseOverride(List.of("10.0.0.1"));
        assertThat(ip.parseOverride(List.of("::ffff:a00:1"))).isEqualTo(v4);
        assertThat(ip.parseOverride(List.of("10.0.0.1/32"))).isEqualTo(v4);
        Match v6 = ip.parseOverride(List.of("2001:db8:1:2::3"));
        assertThat(ip.parseOverride(List.of("2001:DB8:1:2:ffff::"))).isEqualTo(v6);
        assertThat(ip.parseOverride(List.of("2001:db8:1:2::/64"))).isEqualTo(v6);
    }
}
