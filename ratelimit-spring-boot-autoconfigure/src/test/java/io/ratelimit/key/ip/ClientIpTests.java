package io.ratelimit.key.ip;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ClientIpTests {

    @ParameterizedTest
    @CsvSource({
        "203.0.113.7, 203.0.113.7",
        "0.0.0.0, 0.0.0.0",
        "255.255.255.255, 255.255.255.255",
        "::1, 0:0:0:0::/64",
        "::, 0:0:0:0::/64",
        "2001:db8:0:1:2:3:4:5, 2001:db8:0:1::/64",
        "2001:DB8:0:1::, 2001:db8:0:1::/64",
        "2001:0db8:0000:0001::ffff, 2001:db8:0:1::/64",
        "2001:db8::1.2.3.4, 2001:db8:0:0::/64",
        "1:2:3:4:5:6:1.2.3.4, 1:2:3:4::/64",
        "fe80::1%eth0, fe80:0:0:0::/64",
        "fe80::2%1, fe80:0:0:0::/64",
        "[2001:db8:0:1::7], 2001:db8:0:1::/64",
        "[fe80::1%eth0], fe80:0:0:0::/64",
        "1.2.3.4:5678, 1.2.3.4",
        "1.2.3.4:_hidden.port-1, 1.2.3.4",
        "[2001:db8:0:1::7]:443, 2001:db8:0:1::/64",
        "[fe80::1%eth0]:443, fe80:0:0:0::/64",
        "[::ffff:1.2.3.4]:443, 1.2.3.4",
        "1::8, 1:0:0:0::/64",
        "1:2:3:4:5:6:7::, 1:2:3:4::/64",
        "::2:3:4:5:6:7:8, 0:2:3:4::/64",
    })
    void anAddressHasOneCanonicalForm(String address, String canonical) {
        assertThat(canonical(address, 64)).isEqualTo(canonical);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "::ffff:203.0.113.7",
                "::FFFF:203.0.113.7",
                "0:0:0:0:0:ffff:203.0.113.7",
                "::ffff:cb00:7107",
                "0000::0000:ffff:cb00:7107",
                "[::ffff:203.0.113.7]",
                "::ffff:203.0.113.7%eth0",
            })
    void aMappedAddressIsIpv4ByItsBits(String address) {
        assertThat(canonical(address, 64)).isEqualTo("203.0.113.7");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "unknown",
                "_hidden",
                "localhost",
                "$(x)",
                "1.2.3",
                "1.2.3.4.5",
                "1.2.3.4.",
                ".1.2.3.4",
                "1..2.3",
                "1.2.3.256",
                "01.2.3.4",
                "1.2.3.00",
                "1.2.3.+4",
                "1.2.3.4 ",
                "1.2.3.\u0664",
                "4294967295",
                "0x7f000001",
                "1.2.3.4:",
                "1.2.3.4:567890",
                "1.2.3.4:x",
                "1.2.3.4:-1",
                "1.2.3.4:5678x",
                "[1.2.3.4]",
                "[1.2.3.4]:80",
                "[2001:db8::1]443",
                "[2001:db8::1]:",
                "[2001:db8::1]:x",
                "[2001:db8::1]]",
                "[::1",
                "1:2",
                ":1",
                "1:",
                "1:2:3:4:5:6:7:",
                ":2:3:4:5:6:7:8",
                "[2001:db8::1",
                "2001:db8::1]",
                "[]",
                "[",
                ":",
                ":::",
                "1::2::3",
                "::1::",
                "1:2:3:4:5:6:7",
                "1:2:3:4:5:6:7:8:9",
                "1:2:3:4:5:6:7:8::",
                "::1:2:3:4:5:6:7:8",
                "12345::",
                "g::",
                "-1::",
                "::1.2.3",
                "::1.2.3.4:5",
                "::256.2.3.4",
                "1.2.3.4::",
                "1.2.3.4::5",
                "%",
                "%:",
                "1.2.3.4%eth0",
                "1:2:3:4:5:6:7:1.2.3.4",
            })
    void allTextsThatAreNoAddressShareAKey(String text) {
        assertThat(canonical(text, 64)).isEqualTo(ClientIp.NONE);
    }

    @Test
    void aMissingAddressAndAVeryLongOneShareThatKey() {
        assertThat(canonical(null, 64)).isEqualTo(ClientIp.NONE);
        assertThat(canonical("1:".repeat(50_000), 64)).isEqualTo(ClientIp.NONE);
        assertThat(canonical("::1%" + "x".repeat(3000), 64)).isEqualTo(ClientIp.NONE);
    }

    @ParameterizedTest
    @CsvSource({
        "32, 2001:db8::/32",
        "33, 2001:db8:8000::/33",
        "48, 2001:db8:ffff::/48",
        "52, 2001:db8:ffff:f000::/52",
        "64, 2001:db8:ffff:ffff::/64",
        "65, 2001:db8:ffff:ffff:8000::/65",
        "127, 2001:db8:ffff:ffff:ffff:ffff:ffff:fffe/127",
        "128, 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128",
    })
    void anAddressIsCutToThePrefix(int prefix, String canonical) {
        assertThat(canonical("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", prefix)).isEqualTo(canonical);
    }

    private static String canonical(String address, int prefix) {
        return new ClientIp(List.of(), "x-forwarded-for", prefix).resolve(address, name -> {
            throw new AssertionError("no header is read");
        });
    }

    /** Compares with the JDK, which must agree on each literal that both accept. */
    @RepeatedTest(50)
    void agreesWithJavaOnRandomAddresses(RepetitionInfo run) throws UnknownHostException {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 200; i++) {
            byte[] bits = new byte[16];
            random.nextBytes(bits);
            int zeros = random.nextInt(17);
            Arrays.fill(bits, random.nextInt(zeros + 1), zeros, (byte) 0);
            String text = spelled(bits, random);
            String prefix = InetAddress.getByAddress(masked(bits)).getHostAddress();
            String expected = InetAddress.getByAddress(bits) instanceof Inet6Address
                    ? prefix.replaceFirst(":0:0:0:0$", "::/64")
                    : InetAddress.getByAddress(bits).getHostAddress();
            assertThat(canonical(text, 64))
                    .as("seed %d, %s", run.getCurrentRepetition(), text)
                    .isEqualTo(expected);
        }
    }

    private static byte[] masked(byte[] bits) {
        return Arrays.copyOf(Arrays.copyOf(bits, 8), 16);
    }

    /** Returns a random spelling of the address, with or without a gap, leading zeros and capitals. */
    private static String spelled(byte[] bits, SplittableRandom random) {
        String[] groups = new String[8];
        for (int i = 0; i < 8; i++) {
            int group = (bits[2 * i] & 0xff) << 8 | bits[2 * i + 1] & 0xff;
            String hex = random.nextBoolean() ? String.format("%04x", group) : Integer.toHexString(group);
            groups[i] = random.nextBoolean() ? hex.toUpperCase(Locale.ROOT) : hex;
        }
        int from = 0;
        while (from < 8 && !groups[from].matches("0+")) {
            from++;
        }
        int to = from;
        while (to < 8 && groups[to].matches("0+")) {
            to++;
        }
        if (from == to || random.nextInt(4) == 0) {
            return String.join(":", groups);
        }
        return String.join(":", Arrays.copyOfRange(groups, 0, from)) + "::"
                + String.join(":", Arrays.copyOfRange(groups, to, 8));
    }
}
