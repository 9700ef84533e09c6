package io.ratelimit.key.ip;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.math.BigInteger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class IpNetworkTests {

    @ParameterizedTest
    @CsvSource({
        "10.0.0.0/8, 10.0.0.0, true",
        "10.0.0.0/8, 10.255.255.255, true",
        "10.0.0.0/8, 9.255.255.255, false",
        "10.0.0.0/8, 11.0.0.0, false",
        "10.0.0.0/8, ::ffff:10.1.2.3, true",
        "::ffff:10.0.0.0/104, 10.1.2.3, true",
        "::ffff:10.1.2.3, 10.1.2.3, true",
        "192.0.2.7, 192.0.2.7, true",
        "192.0.2.7, 192.0.2.6, false",
        "192.0.2.6/31, 192.0.2.7, true",
        "192.0.2.7/32, 192.0.2.7, true",
        "0.0.0.0/0, 203.0.113.7, true",
        "0.0.0.0/0, ::1, false",
        "::/0, 2001:db8::1, true",
        "::/0, 203.0.113.7, false",
        "::/64, 203.0.113.7, false",
        "2001:db8::/32, 2001:db8:ffff::1, true",
        "2001:db8::/32, 2001:db9::, false",
        "2001:db8:8000::/33, 2001:db8:8000::1, true",
        "2001:db8:8000::/33, 2001:db8:7fff::1, false",
        "2001:db8::/65, 2001:db8::7fff:0:0:0, true",
        "2001:db8::/65, 2001:db8::8000:0:0:0, false",
        "::1, ::1, true",
        "::1, ::2, false",
        "::1/128, ::1, true",
        "fe80::/10, fe80::1%eth0, true",
    })
    void containsTheAddressesWithItsPrefix(String network, String address, boolean contained) {
        assertThat(IpNetwork.of(network).contains(IpAddress.of(address))).isEqualTo(contained);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "/8",
                "10.0.0.0/",
                "10.0.0.0/33",
                "10.0.0.0/-1",
                "10.0.0.0/+8",
                "10.0.0.0/x",
                "10.0.0.0/0008",
                "10.0.0.0/99999999999",
                "10.0.0.0/8/8",
                "10.0.0.0/255.0.0.0",
                "10.0.0/8",
                "10.0.0.0/8 ",
                "10.0.0.*",
                "010.0.0.0/8",
                "2001:db8::/129",
                "2001:db8/32",
                "[2001:db8::]/32",
                "[2001:db8::1]",
                "192.0.2.7:80",
                "fe80::1%eth0",
                "localhost",
                "proxy.example.com",
            })
    void aTextThatIsNoNetworkIsRejectedWithExamples(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> IpNetwork.of(text))
                .withMessage("'" + text + "' is neither an address nor a network: write '10.0.0.0/8', '192.0.2.7' or"
                        + " '2001:db8::/32', for example; names are not resolved");
    }

    @ParameterizedTest
    @CsvSource({
        "10.0.0.1/8, 10.0.0.0/8, 10.0.0.1",
        "192.0.2.7/31, 192.0.2.6/31, 192.0.2.7",
        "2001:db8::1/32, 2001:db8::/32, 2001:db8::1",
        "2001:db8:1:2:8000::/64, 2001:db8:1:2::/64, 2001:db8:1:2:8000::",
        "::ffff:10.0.0.1/104, 10.0.0.0/8, ::ffff:10.0.0.1",
        "::ffff:0:0/80, ::/80, ::ffff:0:0",
        "1.2.3.4/0, 0.0.0.0/0, 1.2.3.4",
        "::1/0, ::/0, ::1",
    })
    void bitsAfterThePrefixAreRejectedWithTheNetworkAndTheAddress(String text, String network, String address) {
        String shown = network.equals("::/80") ? "0:0:0:0:0::/80" : network;
        assertThatIllegalArgumentException()
                .isThrownBy(() -> IpNetwork.of(text))
                .withMessage("'" + text + "' has bits after its prefix: write '" + shown + "', or '" + address
                        + "' for the one address");
        assertThat(IpNetwork.of(shown)).isEqualTo(IpNetwork.of(network)).hasToString(shown);
    }

    /** Compares with integer arithmetic on the addresses that the JDK parses. */
    @RepeatedTest(50)
    void agreesWithIntegerArithmeticOnRandomNetworks(RepetitionInfo run) throws UnknownHostException {
        SplittableRandom random = new SplittableRandom(run.getCurrentRepetition());
        for (int i = 0; i < 200; i++) {
            byte[] network = new byte[random.nextBoolean() ? 4 : 16];
            random.nextBytes(network);
            int prefix = random.nextInt(network.length * 8 + 1);
            int shift = network.length * 8 - prefix;
            BigInteger bits = number(network).shiftRight(shift);
            byte[] address = near(network, random);
            String text = InetAddress.getByAddress(bytes(bits.shiftLeft(shift), network.length))
                            .getHostAddress()
                    + "/" + prefix;

            assertThat(IpNetwork.of(text)
                            .contains(IpAddress.of(
                                    InetAddress.getByAddress(address).getHostAddress())))
                    .as("seed %d, %s and %s", run.getCurrentRepetition(), text, InetAddress.getByAddress(address))
                    .isEqualTo(number(address).shiftRight(shift).equals(bits));
        }
    }

    /** Returns the address with at most one bit flipped. */
    private static byte[] near(byte[] address, SplittableRandom random) {
        byte[] near = address.clone();
        int bit = random.nextInt(address.length * 9);
        if (bit < address.length * 8) {
            near[bit / 8] ^= (byte) (1 << bit % 8);
        }
        return near;
    }

    private static BigInteger number(byte[] bytes) {
        return new BigInteger(1, bytes);
    }

    private static byte[] bytes(BigInteger number, int length) {
        byte[] bytes = new byte[length];
        byte[] all = number.toByteArray();
        int copied = Math.min(all.length, length);
        System.arraycopy(all, all.length - copied, bytes, length - copied, copied);
        return bytes;
    }
}
