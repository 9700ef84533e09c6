package io.ratelimit.key.ip;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which hop of a forwarding header is the client. */
class ForwardedHopsTests {

    private static final String PEER = "10.0.0.1";

    private final ClientIp list = clientIp("X-Forwarded-For");
    private final ClientIp forwarded = clientIp("Forwarded");
    private final ClientIp single = clientIp("CF-Connecting-IP");

    private static ClientIp clientIp(String header) {
        return new ClientIp(
                Stream.of("10.0.0.0/8", "192.0.2.7", "2001:db8:ffff::/48")
                        .map(IpNetwork::of)
                        .toList(),
                header,
                64);
    }

    private static String client(ClientIp clientIp, String... lines) {
        return clientIp.resolve(PEER, name -> Collections.enumeration(List.of(lines)));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1.1.1.1                                    | 1.1.1.1",
                "9.9.9.9, 1.1.1.1                           | 1.1.1.1",
                "9.9.9.9,1.1.1.1,10.2.3.4                   | 1.1.1.1",
                "9.9.9.9, 1.1.1.1 ,\t10.2.3.4 , 192.0.2.7   | 1.1.1.1",
                "1.1.1.1, 2001:db8:ffff::1                  | 1.1.1.1",
                "2001:db8:1:2:3::4, 10.2.3.4                | 2001:db8:1:2::/64",
                "[2001:db8:1:2:3::4]:443, 10.2.3.4:80       | 2001:db8:1:2::/64",
                "1.1.1.1:5678, ::ffff:10.2.3.4              | 1.1.1.1",
                "::ffff:1.1.1.1                             | 1.1.1.1",
                "10.3.3.3, 10.2.2.2                         | 10.3.3.3",
                "9.9.9.9, 10.3.3.3, unknown, 10.2.2.2       | 10.2.2.2",
                "9.9.9.9, _hidden, 10.2.2.2                 | 10.2.2.2",
                "9.9.9.9, , 10.2.2.2                        | 10.2.2.2",
                "9.9.9.9,                                   | 10.0.0.1",
                "9.9.9.9, localhost                         | 10.0.0.1",
                "9.9.9.9, 10.0.0.256                        | 10.0.0.1",
                "9.9.9.9, 010.2.2.2                         | 10.0.0.1",
                "9.9.9.9, 10.2.2.2 10.2.2.2                 | 10.0.0.1",
                "9.9.9.9; 10.2.2.2                          | 10.0.0.1",
                "'\"1.1.1.1\"'                              | 10.0.0.1",
                "for=1.1.1.1                                | 10.0.0.1",
                "' '                                        | 10.0.0.1",
            })
    void theLastHopInAListThatIsNoTrustedProxyIsTheClient(String line, String client) {
        assertThat(client(list, line)).isEqualTo(client);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "for=1.1.1.1                                              | 1.1.1.1",
                "For=1.1.1.1;Proto=https;By=10.0.0.1                      | 1.1.1.1",
                "proto=https; for=1.1.1.1 ; by=_me                        | 1.1.1.1",
                "for=\"1.1.1.1:80\"                                       | 1.1.1.1",
                "for=1.1.1.1:80                                           | 1.1.1.1",
                "for=\"1.1.1.1:_port\"                                    | 1.1.1.1",
                "for=\"[2001:db8:1:2::3]\"                                | 2001:db8:1:2::/64",
                "for=\"[2001:DB8:1:2::3]:443\";proto=https, for=10.2.2.2  | 2001:db8:1:2::/64",
                "for=9.9.9.9, for=1.1.1.1, for=\"10.2.2.2\"               | 1.1.1.1",
                "for=9.9.9.9,for=1.1.1.1;host=\"a, b\";by=x,for=10.2.2.2  | 1.1.1.1",
                "for=1.1.1.1;host=\"x\\\", for=9.9.9.9\"                  | 1.1.1.1",
                "for=1.1.1.1;host=\"x;for=9.9.9.9\"                       | 1.1.1.1",
                "for=1.1.1.1;host=\"x\\\\\"                               | 1.1.1.1",
                "for=\", for=1.1.1.1                                      | 1.1.1.1",
                "for=\"9.9.9.9, for=\"1.1.1.1\"                           | 1.1.1.1",
                "for=9.9.9.9;x=\", for=1.1.1.1;host=\"abc\"               | 1.1.1.1",
                "garbage\\, for=1.1.1.1                                   | 1.1.1.1",
                "for=9.9.9.9, for=unknown, for=10.2.2.2                   | 10.2.2.2",
                "for=9.9.9.9, for=_hidden, for=10.2.2.2                   | 10.2.2.2",
                "for=9.9.9.9, proto=https, for=10.2.2.2                   | 10.2.2.2",
                "for=9.9.9.9, for=1.1.1.1;for=1.1.1.2, for=10.2.2.2       | 10.2.2.2",
                "for=9.9.9.9, for=, for=10.2.2.2                          | 10.2.2.2",
                "for=9.9.9.9, for                                         | 10.0.0.1",
                "for=9.9.9.9, fo                                          | 10.0.0.1",
                "for=9.9.9.9, for =1.1.1.1                                | 10.0.0.1",
                "for=9.9.9.9, for=\"1.1.1.1                               | 10.0.0.1",
                "for=9.9.9.9, for=1.1.1.1\"                               | 10.0.0.1",
                "for=9.9.9.9, for=\"                                      | 10.0.0.1",
                "for=9.9.9.9, for=\"\"                                    | 10.0.0.1",
                "for=9.9.9.9, for=\"1.1.1\\.1\"                           | 10.0.0.1",
                "for=9.9.9.9,                                             | 10.0.0.1",
                "1.1.1.1                                                  | 10.0.0.1",
            })
    void theLastHopInForwardedThatIsNoTrustedProxyIsTheClient(String line, String client) {
        assertThat(client(forwarded, line)).isEqualTo(client);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1.1.1.1          | 1.1.1.1",
                "' 1.1.1.1:80 '   | 1.1.1.1",
                "10.2.2.2         | 10.2.2.2",
                "9.9.9.9, 1.1.1.1 | 10.0.0.1",
                "unknown          | 10.0.0.1",
            })
    void anyOtherHeaderContainsOneAddress(String line, String client) {
        assertThat(client(single, line)).isEqualTo(client);
    }

    @Test
    void severalLinesFormOneList() {
        assertThat(client(list, "9.9.9.9", "8.8.8.8, 1.1.1.1", "10.2.2.2, 10.3.3.3"))
                .isEqualTo("1.1.1.1");
        assertThat(client(list, "1.1.1.1", "", "10.2.2.2")).isEqualTo("10.2.2.2");
        assertThat(client(forwarded, "for=9.9.9.9", "for=1.1.1.1", "for=10.2.2.2"))
                .isEqualTo("1.1.1.1");
        assertThat(client(single, "9.9.9.9", "1.1.1.1")).isEqualTo(PEER);
    }

    @Test
    void withoutTheHeaderThePeerIsTheClient() {
        for (ClientIp clientIp : List.of(list, forwarded, single)) {
            assertThat(client(clientIp)).isEqualTo(PEER);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"11.0.0.1", "192.0.2.6", "2001:db8:fffe::1", "::10.0.0.1", "::1"})
    void aPeerThatIsNoTrustedProxyIsTheClient(String peer) {
        String client = list.resolve(peer, name -> {
            throw new AssertionError("no header is read");
        });
        assertThat(client).isEqualTo(list.canonical(peer)).isNotEqualTo(ClientIp.NONE);
    }

    @ParameterizedTest
    @ValueSource(strings = {"10.9.9.9", "192.0.2.7", "::ffff:10.0.0.1", "::FFFF:c000:207", "2001:db8:ffff:1::1%eth0"})
    void aTrustedProxyMayHaveAnySpelling(String peer) {
        assertThat(list.resolve(peer, name -> Collections.enumeration(List.of("1.1.1.1"))))
                .isEqualTo("1.1.1.1");
    }

    @Test
    void aPeerWithoutAnAddressIsNoTrustedProxy() {
        for (String peer : new String[] {null, "", "unix:", "localhost"}) {
            assertThat(list.resolve(peer, name -> Collections.enumeration(List.of("1.1.1.1"))))
                    .isEqualTo(ClientIp.NONE);
        }
    }

    @Test
    void onlyTheNearestHopsAreRead() {
        assertThat(client(list, "1.1.1.1," + "10.2.2.2,".repeat(62) + "10.3.3.3"))
                .isEqualTo("1.1.1.1");
        assertThat(client(list, "1.1.1.1," + "10.2.2.2,".repeat(63) + "10.3.3.3"))
                .isEqualTo("10.2.2.2");
        assertThat(client(forwarded, "for=1.1.1.1," + "for=10.2.2.2,".repeat(63) + "for=10.3.3.3"))
                .isEqualTo("10.2.2.2");
        String[] lines = Stream.concat(
                        Stream.of("1.1.1.1"), Stream.generate(() -> "10.2.2.2").limit(64))
                .toArray(String[]::new);
        assertThat(client(list, lines)).isEqualTo("10.2.2.2");
        assertThat(client(list, ",".repeat(8000))).isEqualTo(PEER);
    }

    /** The result is always an address that a proxy wrote, for any text that the client sent before it. */
    @RepeatedTest(50)
    void textOfTheClientNeverChangesTheResult(RepetitionInfo run) {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        String alphabet = " ,;=\"\\[]:.%_for1290ax\t/";
        for (int i = 0; i < 1000; i++) {
            StringBuilder sent = new StringBuilder();
            for (int length = random.nextInt(40); length > 0; length--) {
                sent.append(alphabet.charAt(random.nextInt(alphabet.length())));
            }
            assertThat(client(list, sent + ", 1.1.1.1, 10.2.2.2"))
                    .as("seed %d, sent: %s", run.getCurrentRepetition(), sent)
                    .isEqualTo("1.1.1.1");
            assertThat(client(forwarded, sent + ", for=1.1.1.1;host=\"a\\\"b\", for=\"10.2.2.2:80\";proto=http"))
                    .as("seed %d, sent: %s", run.getCurrentRepetition(), sent)
                    .isEqualTo("1.1.1.1");
        }
    }
}
