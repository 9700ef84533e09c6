package io.ratelimit.key.ip;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A network of addresses, or one address: {@code 10.0.0.0/8}, {@code 2001:db8::/32}, {@code 192.0.2.7}. Immutable. */
public final class IpNetwork {

    static final int MAX_PREFIX = 128;
    private static final Pattern PREFIX = Pattern.compile("[0-9]{1,3}");

    private final IpAddress first;
    private final int prefix;

    /** @param address any address of the network */
    IpNetwork(IpAddress address, int prefix) {
        this.first = address.masked(prefix);
        this.prefix = prefix;
    }

    /**
     * Parses a network or an address.
     *
     * @throws IllegalArgumentException if the text is neither, or has bits after the prefix; the message contains a
     *     correct text
     */
    public static IpNetwork of(String text) {
        int slash = text.indexOf('/');
        String literal = slash < 0 ? text : text.substring(0, slash);
        IpAddress address = isLiteral(literal) ? IpAddress.of(literal) : null;
        if (address == null) {
            throw invalid(text);
        }
        int mappedBits = address.isIpv4() && literal.indexOf(':') < 0 ? IpAddress.MAPPED_PREFIX : 0;
        int prefix = slash < 0 ? MAX_PREFIX : mappedBits + prefix(text.substring(slash + 1));
        if (prefix < mappedBits || prefix > MAX_PREFIX) {
            throw invalid(text);
        }
        IpNetwork network = new IpNetwork(address, prefix);
        if (!network.first.equals(address)) {
            throw new IllegalArgumentException("'" + text + "' has bits after its prefix: write '" + network + "', or '"
                    + literal + "' for the one address");
        }
        return network;
    }

    /** Returns whether the text has no port, brackets or zone. */
    private static boolean isLiteral(String text) {
        boolean ipv6 = text.indexOf(':') != text.lastIndexOf(':');
        return (ipv6 || text.indexOf(':') < 0) && text.indexOf('[') < 0 && text.indexOf('%') < 0;
    }

    /** Parses at most three digits; returns a number that is no prefix for any other text. */
    private static int prefix(String text) {
        return PREFIX.matcher(text).matches() ? Integer.parseInt(text) : -MAX_PREFIX;
    }

    private static IllegalArgumentException invalid(String text) {
        return new IllegalArgumentException("'" + text + "' is neither an address nor a network: write '10.0.0.0/8',"
                + " '192.0.2.7' or '2001:db8::/32', for example; names are not resolved");
    }

    /** Returns whether the network contains an address; an IPv4 network contains no IPv6 address, and vice versa. */
    boolean contains(IpAddress address) {
        return first.isIpv4() == address.isIpv4() && first.sharesPrefix(address, prefix);
    }

    /** Returns the network of a shorter prefix around this one; null if an IPv4 network has no such prefix. */
    public @Nullable IpNetwork widened(int shorter) {
        return first.isIpv4() && shorter < IpAddress.MAPPED_PREFIX ? null : new IpNetwork(first, shorter);
    }

    /** Returns whether one IPv6 client has more addresses than the network. */
    public boolean isPartOfClient(int ipv6Prefix) {
        return !isAddress() && !first.isIpv4() && prefix > ipv6Prefix;
    }

    /** Returns the text of the IPv6 client that has the first address, or of an IPv4 address. */
    public String clientText(int ipv6Prefix) {
        return first.text(ipv6Prefix);
    }

    /** Returns whether the network has the addresses of one client, or one of them. */
    public boolean isClient(int ipv6Prefix) {
        return isAddress() || !first.isIpv4() && prefix == ipv6Prefix;
    }

    public boolean isAddress() {
        return prefix == MAX_PREFIX;
    }

    /** Returns whether the network contains all addresses of IPv4, or all of IPv6. */
    public boolean isEverything() {
        return prefix == (first.isIpv4() ? IpAddress.MAPPED_PREFIX : 0);
    }

    /** Returns the number of bits that all addresses share, out of 128: those of IPv4 are the last 32. */
    public int prefix() {
        return prefix;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof IpNetwork network && prefix == network.prefix && first.equals(network.first);
    }

    @Override
    public int hashCode() {
        return 31 * first.hashCode() + prefix;
    }

    /** Returns a text that {@link #of} accepts. */
    @Override
    public String toString() {
        return first.isIpv4() ? first.dotted() + "/" + (prefix - IpAddress.MAPPED_PREFIX) : first.network(prefix);
    }
}
