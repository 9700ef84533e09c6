package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** A network of addresses, or one address: {@code 10.0.0.0/8}, {@code 2001:db8::/32}, {@code 192.0.2.7}. */
public final class IpNetwork {

    private static final int LONGEST_PREFIX = 128;

    private final IpAddress first;
    private final int prefix;

    IpNetwork(IpAddress first, int prefix) {
        this.first = first;
        this.prefix = prefix;
    }

    /**
     * Reads a network as it is written.
     *
     * @throws IllegalArgumentException if it is none, or the address has bits behind the prefix; the message says what
     *     to write
     */
    public static IpNetwork of(String text) {
        int slash = text.indexOf('/');
        String written = slash < 0 ? text : text.substring(0, slash);
        IpAddress address = isLiteral(written) ? IpAddress.of(written) : null;
        if (address == null) {
            throw none(text);
        }
        int before = address.isIpv4() && written.indexOf(':') < 0 ? IpAddress.MAPPED_PREFIX : 0;
        int prefix = slash < 0 ? LONGEST_PREFIX : before + prefix(text, slash + 1);
        if (prefix < before || prefix > LONGEST_PREFIX) {
            throw none(text);
        }
        IpNetwork network = new IpNetwork(address.masked(prefix), prefix);
        if (!network.first.equals(address)) {
            throw new IllegalArgumentException("'" + text + "' has bits behind its prefix: say '" + network + "', or '"
                    + written + "' for the one address");
        }
        return network;
    }

    /** Without a port, brackets or a zone. */
    private static boolean isLiteral(String text) {
        boolean ipv6 = text.indexOf(':') != text.lastIndexOf(':');
        return (ipv6 || text.indexOf(':') < 0) && text.indexOf('[') < 0 && text.indexOf('%') < 0;
    }

    /** A number of three digits at most, or one that is no prefix. */
    private static int prefix(String text, int from) {
        int prefix = 0;
        for (int i = from; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < '0' || c > '9' || i == from + 3) {
                return -LONGEST_PREFIX;
            }
            prefix = prefix * 10 + c - '0';
        }
        return from == text.length() ? -LONGEST_PREFIX : prefix;
    }

    private static IllegalArgumentException none(String text) {
        return new IllegalArgumentException("'" + text + "' is neither an address nor a network: say '10.0.0.0/8',"
                + " '192.0.2.7' or '2001:db8::/32', for example; names are not resolved");
    }

    /** The network of so many bits that an address is in. */
    static IpNetwork around(IpAddress address, int prefix) {
        return new IpNetwork(address.masked(prefix), prefix);
    }

    boolean contains(IpAddress address) {
        return first.isIpv4() == address.isIpv4() && first.sharesPrefix(address, prefix);
    }

    IpAddress first() {
        return first;
    }

    /** The bits that its addresses share, of the 128 of IPv6: those of IPv4 are the last 32. */
    int prefix() {
        return prefix;
    }

    /** Whether it is one address. */
    boolean isAddress() {
        return prefix == LONGEST_PREFIX;
    }

    /** Whether all addresses of its kind are in it. */
    public boolean isEverything() {
        return prefix == (first.isIpv4() ? IpAddress.MAPPED_PREFIX : 0);
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof IpNetwork network && network.prefix == prefix && network.first.equals(first);
    }

    @Override
    public int hashCode() {
        return 31 * first.hashCode() + prefix;
    }

    /** As it may be written. */
    @Override
    public String toString() {
        return first.isIpv4() ? first.dotted() + "/" + (prefix - IpAddress.MAPPED_PREFIX) : first.network(prefix);
    }
}
