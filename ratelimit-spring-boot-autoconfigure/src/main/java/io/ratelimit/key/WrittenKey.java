package io.ratelimit.key;

import java.util.Collection;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Reads the key of one bucket as a person writes it, into the texts that requests have. What is written is never in a
 * message: it may be somebody's. Immutable.
 */
public final class WrittenKey {

    private final List<KeyPart> parts;
    private final boolean ignoreCase;
    private final int ipv6Prefix;
    private final Supplier<Collection<String>> endpoints;

    /**
     * @param parts of the policy's key
     * @param ignoreCase whether keys that differ in case alone are one
     * @param ipv6Prefix the bits of an IPv6 address that count
     * @param endpoints the names of those that there are
     */
    public WrittenKey(List<KeyPart> parts, boolean ignoreCase, int ipv6Prefix, Supplier<Collection<String>> endpoints) {
        this.parts = List.copyOf(parts);
        this.ignoreCase = ignoreCase;
        this.ipv6Prefix = ipv6Prefix;
        this.endpoints = endpoints;
    }

    /**
     * The texts of the parts as requests have them.
     *
     * @param written one for each part, none blank
     * @throws IllegalArgumentException if there are not as many, or one is what no request can have
     */
    public List<String> read(List<String> written) {
        if (written.size() != parts.size()) {
            throw new IllegalArgumentException(shape(KeyPart.names(parts), written.size()));
        }
        String[] texts = new String[parts.size()];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = text(parts.get(i).name(), written.get(i));
        }
        return List.of(texts);
    }

    /** What is wrong with a key that has not as many texts as there are parts. */
    public static String shape(List<String> parts, int texts) {
        return parts.isEmpty()
                ? "the policy is global: it has one bucket and no 'key'"
                : "the number of 'key's must be " + parts.size() + ", one for each part in this order: "
                        + String.join(", ", parts) + "; but was " + texts;
    }

    private String text(String part, String written) {
        return switch (part) {
            case "ip" -> ip(written);
            case "method" -> method(written);
            case "endpoint" -> endpoint(written);
            default -> written;
        };
    }

    private String ip(String written) {
        if (written.equals(ClientIp.NONE)) {
            return written;
        }
        IpNetwork network = network(written);
        boolean one =
                network != null && (network.isAddress() || !network.first().isIpv4() && network.prefix() == ipv6Prefix);
        if (network == null || !one) {
            throw new IllegalArgumentException("the ip of the key must be an address, such as '192.0.2.7' or"
                    + " '2001:db8::1', or '" + ClientIp.NONE + "' for what has none");
        }
        return network.first().text(ipv6Prefix);
    }

    private static @Nullable IpNetwork network(String written) {
        try {
            return IpNetwork.of(written);
        } catch (IllegalArgumentException unreadable) {
            return null; // its message has what is written
        }
    }

    private static String method(String written) {
        String method = KeyPart.methodOf(written);
        if (method.equals("other") && !written.equals(method)) {
            throw new IllegalArgumentException(
                    "the method of the key must be one that HTTP defines, in capital letters,"
                            + " or 'other' for all that it doesn't");
        }
        return method;
    }

    private String endpoint(String written) {
        Collection<String> known = endpoints.get();
        if (!written.equals("none") && known.stream().noneMatch(name -> isEqual(name, written))) {
            throw new IllegalArgumentException("the endpoint of the key must be one of the application's, such as '"
                    + known.stream().findFirst().orElse("GET /items/{id}") + "', or 'none' for what reaches none");
        }
        return written;
    }

    private boolean isEqual(String name, String written) {
        return ignoreCase ? name.equalsIgnoreCase(written) : name.equals(written);
    }
}
