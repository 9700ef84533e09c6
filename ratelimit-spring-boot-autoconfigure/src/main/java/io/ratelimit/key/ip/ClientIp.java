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
        if (address.length() <= 15 && IpAddress.Reader.ipv4(address, 0, address.length()) >= 0) {
            return address;
        }
        IpAddress parsed = IpAddress.of(address);
        return parsed == null ? NONE : parsed.text(ipv6Prefix);
    }

    /**
     * Returns the address in a canonical text, or the first address of the network in it; null if the text contains
     * neither.
     */
    public static @Nullable IpAddress addressOf(String canonical) {
        int slash = canonical.indexOf('/');
        return IpAddress.Reader.read(canonical, 0, slash < 0 ? canonical.length() : slash);
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

    /** The syntax in which a forwarding header lists the hops of a request. The nearest hop is the last. */
    private enum HopSyntax {
        /** A single address, as in {@code CF-Connecting-IP}. */
        SINGLE {
            @Override
            int start(String line, int end) {
                return 0;
            }
        },

        /** Addresses separated by commas, as in {@code X-Forwarded-For}. */
        LIST {
            @Override
            int start(String line, int end) {
                return end == 0 ? 0 : line.lastIndexOf(',', end - 1) + 1;
            }
        },

        /** The elements of RFC 7239: {@code for="[2001:db8::1]:443";proto=https, for=192.0.2.1}. */
        FORWARDED {
            /** Matches quotes from the end, so that text of a client before the last element can't move the element's start. */
            @Override
            int start(String line, int end) {
                boolean quoted = false;
                for (int i = end - 1; i >= 0; i--) {
                    char c = line.charAt(i);
                    if (c == '"' && !isEscaped(line, i)) {
                        quoted = !quoted;
                    } else if (c == ',' && !quoted) {
                        return i + 1;
                    }
                }
                return 0;
            }

            @Override
            @Nullable
            IpAddress address(String line, int start, int end) {
                IpAddress address = null;
                for (int from = start; from < end; ) {
                    int to = endOfPair(line, from, end);
                    int name = skipBlanks(line, from, to);
                    if (line.regionMatches(true, name, FOR, 0, FOR.length())) {
                        if (address != null) {
                            return null;
                        }
                        address = value(line, name + FOR.length(), to);
                        if (address == null) {
                            return null;
                        }
                    }
                    from = to + 1;
                }
                return address;
            }
        };

        private static final String FOR = "for=";

        /** Returns the start of the last hop before {@code end}; it is 0, or the index after a comma. */
        abstract int start(String line, int end);

        /** Returns the address of a hop; null if the hop has none, hides it or can't be read. */
        @Nullable
        IpAddress address(String line, int start, int end) {
            int from = skipBlanks(line, start, end);
            return IpAddress.Reader.read(line, from, skipBlanksBack(line, from, end));
        }

        private static @Nullable IpAddress value(String line, int start, int end) {
            int to = skipBlanksBack(line, start, end);
            boolean quoted = start + 1 < to && line.charAt(start) == '"' && line.charAt(to - 1) == '"';
            return quoted ? IpAddress.Reader.read(line, start + 1, to - 1) : IpAddress.Reader.read(line, start, to);
        }

        /** Returns the index of the next semicolon outside quotes, or the end. */
        private static int endOfPair(String line, int from, int end) {
            boolean quoted = false;
            for (int i = from; i < end; i++) {
                char c = line.charAt(i);
                if (c == '"' && !isEscaped(line, i)) {
                    quoted = !quoted;
                } else if (c == ';' && !quoted) {
                    return i;
                }
            }
            return end;
        }

        private static boolean isEscaped(String line, int quote) {
            int i = quote;
            while (i > 0 && line.charAt(i - 1) == '\\') {
                i--;
            }
            return (quote - i) % 2 == 1;
        }

        private static int skipBlanks(String line, int from, int end) {
            int i = from;
            while (i < end && isBlank(line.charAt(i))) {
                i++;
            }
            return i;
        }

        private static int skipBlanksBack(String line, int from, int end) {
            int i = end;
            while (i > from && isBlank(line.charAt(i - 1))) {
                i--;
            }
            return i;
        }

        private static boolean isBlank(char c) {
            return c == ' ' || c == '\t';
        }
    }
}
