package io.ratelimit.key.ip;

import org.jspecify.annotations.Nullable;

/**
 * An IPv6 address, or an IPv4 address mapped into IPv6.
 *
 * @param high the first 64 bits
 * @param low the last 64 bits
 */
record IpAddress(long high, long low) {

    private static final long MAPPED = 0xffffL;

    /** The number of bits in a mapped address before those of IPv4. */
    static final int MAPPED_PREFIX = 96;

    /** @param bits the 32 bits; negative for none */
    static @Nullable IpAddress ofIpv4(long bits) {
        return bits < 0 ? null : new IpAddress(0, MAPPED << 32 | bits);
    }

    /** Parses an address as a peer or a proxy sends it, with an optional port; returns null if the text is none. */
    static @Nullable IpAddress of(String text) {
        return IpAddressReader.read(text, 0, text.length());
    }

    boolean isIpv4() {
        return high == 0 && low >>> 32 == MAPPED;
    }

    IpAddress masked(int prefix) {
        return new IpAddress(high & mask(prefix), low & mask(prefix - 64));
    }

    boolean sharesPrefix(IpAddress other, int prefix) {
        return ((high ^ other.high) & mask(prefix) | (low ^ other.low) & mask(prefix - 64)) == 0;
    }

    private static long mask(int prefix) {
        return prefix <= 0 ? 0 : prefix >= 64 ? -1L : -1L << 64 - prefix;
    }

    /**
     * Returns the canonical form: dotted for IPv4; for IPv6 the network, because a client has all addresses of such a
     * network.
     */
    String text(int ipv6Prefix) {
        return isIpv4() ? dotted() : network(ipv6Prefix);
    }

    String dotted() {
        return (low >>> 24 & 0xff) + "." + (low >>> 16 & 0xff) + "." + (low >>> 8 & 0xff) + "." + (low & 0xff);
    }

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
