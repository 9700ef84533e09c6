package io.ratelimit.key;

import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Tells whose request it is: the address of the client in its one canonical form, as the key of a bucket. Never resolves
 * a name. What is no address is one key for all: the text may come from a header, and each text would be a new bucket.
 *
 * <p>A header may name the client only where the peer is a trusted proxy. Each proxy adds the address that it was called
 * from, so the header is read from its end, and the first address that is no trusted proxy's is the client: what is
 * before that, anyone may have written. Where a hop can't be read, the client is the last proxy that could. Immutable.
 */
public final class ClientIp {

    /** The key of all that have no address. */
    public static final String NONE = "none";

    /** So many proxies stand before nobody: whoever sends more hops wants them all to be read. */
    private static final int MOST_HOPS = 64;

    private final List<IpNetwork> trustedProxies;
    private final String header;
    private final HopSyntax syntax;
    private final int ipv6Prefix;

    /**
     * @param trustedProxies may speak for a client
     * @param header that they do it by: {@code X-Forwarded-For}, {@code Forwarded}, or one that has one address
     * @param ipv6Prefix the bits of an IPv6 address that count, since a client has all addresses of such a network
     */
    public ClientIp(List<IpNetwork> trustedProxies, String header, int ipv6Prefix) {
        this.trustedProxies = List.copyOf(trustedProxies);
        this.header = header;
        this.syntax = switch (header.toLowerCase(Locale.ROOT)) {
            case "x-forwarded-for" -> HopSyntax.LIST;
            case "forwarded" -> HopSyntax.FORWARDED;
            default -> HopSyntax.SINGLE;
        };
        this.ipv6Prefix = ipv6Prefix;
    }

    /** Whether any peer may speak for a client. */
    public boolean readsHeaders() {
        return !trustedProxies.isEmpty();
    }

    /** Whether a peer of this address may. */
    public boolean trusts(@Nullable String peer) {
        IpAddress address = peer == null || trustedProxies.isEmpty() ? null : IpAddress.of(peer);
        return address != null && isTrusted(address);
    }

    /**
     * The client of a request: dotted IPv4, also where it came mapped into IPv6; an IPv6 network such as
     * {@code 2001:db8:0:1::/64}; or {@link #NONE}.
     *
     * @param peer the address that the request came from
     * @param headers all lines of a header, in their order
     */
    public String of(@Nullable String peer, Function<String, Enumeration<String>> headers) {
        if (trustedProxies.isEmpty()) {
            return canonical(peer);
        }
        IpAddress address = peer == null ? null : IpAddress.of(peer);
        if (address == null) {
            return NONE;
        }
        IpAddress client = isTrusted(address) ? client(address, Collections.list(headers.apply(header))) : address;
        return client.text(ipv6Prefix);
    }

    /** The one form of an address, whatever its spelling; {@link #NONE} for what is no address. */
    String canonical(@Nullable String address) {
        if (address == null) {
            return NONE;
        }
        if (address.length() <= 15 && IpReader.ipv4(address, 0, address.length()) >= 0) {
            return address;
        }
        IpAddress read = IpAddress.of(address);
        return read == null ? NONE : read.text(ipv6Prefix);
    }

    private IpAddress client(IpAddress peer, List<String> lines) {
        IpAddress nearest = peer;
        int left = syntax == HopSyntax.SINGLE && lines.size() > 1 ? 0 : MOST_HOPS;
        for (int i = lines.size() - 1; i >= 0; i--) {
            String line = lines.get(i);
            for (int end = line.length(); end >= 0; left--) {
                int start = left > 0 ? syntax.start(line, end) : end;
                IpAddress hop = syntax.address(line, start, end);
                if (hop == null || !isTrusted(hop)) {
                    return hop == null ? nearest : hop;
                }
                nearest = hop;
                end = start - 1;
            }
        }
        return nearest;
    }

    private boolean isTrusted(IpAddress address) {
        for (int i = 0; i < trustedProxies.size(); i++) {
            if (trustedProxies.get(i).contains(address)) {
                return true;
            }
        }
        return false;
    }
}
