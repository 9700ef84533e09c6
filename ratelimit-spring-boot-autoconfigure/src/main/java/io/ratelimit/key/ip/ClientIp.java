package io.ratelimit.key.ip;

import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Determines the address of a request's client, in canonical form, as the key of a bucket. Never resolves a name. All
 * texts that are no address share one key: the text may come from a header, and each text would be a new bucket.
 *
 * <p>A header may name the client only if the peer is a trusted proxy. Each proxy appends the address of its own peer, so
 * the header is read from its end. The first address that belongs to no trusted proxy is the client, because anyone may
 * have written the text before it. If a hop can't be read, the client is the proxy that was read last. Immutable.
 */
public final class ClientIp {

    /** The key of all clients without an address. */
    public static final String NONE = "none";

    /** Bounds the work for one header; no real chain of proxies is as long. */
    private static final int MAX_HOPS = 64;

    private final List<IpNetwork> trustedProxies;
    private final String header;
    private final HopSyntax syntax;
    private final int ipv6Prefix;

    /**
     * @param trustedProxies the networks of peers that may name a client
     * @param header the header that names it: {@code X-Forwarded-For}, {@code Forwarded}, or one with a single address
     * @param ipv6Prefix the number of leading bits that identify a client, because a client has all addresses of such a
     *     network
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

    /** Returns whether a peer with this address may name a client. */
    public boolean trusts(@Nullable String peer) {
        IpAddress address = peer == null || trustedProxies.isEmpty() ? null : IpAddress.of(peer);
        return address != null && isTrusted(address);
    }

    /**
     * Returns the client of a request: dotted IPv4, also for an address mapped into IPv6; an IPv6 network such as
     * {@code 2001:db8:0:1::/64}; or {@link #NONE}.
     *
     * @param peer the address of the peer that sent the request; null if unknown
     * @param headers returns all lines of a header, in order
     */
    public String resolve(@Nullable String peer, Function<String, Enumeration<String>> headers) {
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

    /** Returns the canonical form of an address in any spelling; {@link #NONE} for a text that is no address. */
    public String canonical(@Nullable String address) {
        if (address == null) {
            return NONE;
        }
        if (address.length() <= 15 && IpAddressReader.ipv4(address, 0, address.length()) >= 0) {
            return address;
        }
        IpAddress parsed = IpAddress.of(address);
        return parsed == null ? NONE : parsed.text(ipv6Prefix);
    }

    /**
     * Returns the address in a canonical text, or the first address of the network in it, as a network of one address; null
     * if the text contains neither.
     */
    public static @Nullable IpNetwork addressOf(String canonical) {
        int slash = canonical.indexOf('/');
        IpAddress address = IpAddressReader.read(canonical, 0, slash < 0 ? canonical.length() : slash);
        return address == null ? null : new IpNetwork(address, IpNetwork.MAX_PREFIX);
    }

    private IpAddress client(IpAddress peer, List<String> lines) {
        IpAddress nearest = peer;
        int remaining = syntax == HopSyntax.SINGLE && lines.size() > 1 ? 0 : MAX_HOPS;
        for (int i = lines.size() - 1; i >= 0; i--) {
            String line = lines.get(i);
            for (int end = line.length(); end >= 0; remaining--) {
                int start = remaining > 0 ? syntax.start(line, end) : end;
                IpAddress hop = syntax.address(line, start, end);
                if (hop == null) {
                    return nearest;
                }
                if (!isTrusted(hop)) {
                    return hop;
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
