package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/**
 * An address of IPv6, or one of IPv4 as it is mapped into IPv6.
 *
 * @param high the first 64 bits
 * @param low the last 64 bits
 */
record IpAddress(long high, long low) {

    private static final long MAPPED = 0xffffL;

    /** How many bits of a mapped address come before those of IPv4. */
    static final int MAPPED_PREFIX = 96;

    /**
     * @param bits the 32 bits, or less than zero for none
     */
    static @Nullable IpAddress ofIpv4(long bits) {
        return bits < 0 ? null : new IpAddress(0, MAPPED << 32 | bits);
    }

    /** Reads an address as a peer or a proxy may have it, also with a port; null if it is none. */
    static @Nullable IpAddress of(String text) {
        return IpReader.read(text, 0, text.length());
    }

    boolean isIpv4() {
        return high == 0 && low >>> 32 == MAPPED;
    }

    /** The first bits, and zeros for the others. */
    IpAddress masked(int prefix) {
        return new IpAddress(high & mask(prefix), low & mask(prefix - 64));
    }

    /** Whether the first bits of both are the same. */
    boolean sharesPrefix(IpAddress other, int prefix) {
        return ((high ^ other.high) & mask(prefix) | (low ^ other.low) & mask(prefix - 64)) == 0;
    }

    private static long mask(int prefix) {
        return prefix <= 0 ? 0 : prefix >= 64 ? -1L : -1L << 64 - prefix;
    }

    /** The one form: dotted for IPv4; for IPv6 the first bits, since a client has all addresses of such a network. */
    String text(int ipv6Prefix) {
        return isIpv4() ? dotted() : network(ipv6Prefix);
    }

    /** Dotted IPv4. */
    String dotted() {
        return new StringBuilder(15)
                .append(low >>> 24 & 0xff)
                .append('.')
                .append(low >>> 16 & 0xff)
                .append('.')
                .append(low >>> 8 & 0xff)
                .append('.')
                .append(low & 0xff)
                .toString();
    }

    /** The IPv6 network that the first bits are. */
    String network(int prefix) {
        IpAddress network = masked(prefix);
        int shown = (prefix + 15) / 16;
        StringBuilder text = new StringBuilder(48);
        for (int i = 0; i < shown; i++) {
            text.append(i == 0 ? "" : ":").append(Integer.toHexString(network.group(i)));
        }
        return text.append(shown < 8 ? "::/" : "/").append(prefix).toString();
    }

    private int group(int index) {
        return (int) ((index < 4 ? high : low) >>> 48 - 16 * (index & 3)) & 0xffff;
    }
}
