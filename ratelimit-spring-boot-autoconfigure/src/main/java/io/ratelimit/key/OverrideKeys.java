package io.ratelimit.key;

import io.ratelimit.Keys;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reads the keys of overrides as they are written, into the form that the keys of requests have. Immutable. */
public final class OverrideKeys {

    private final List<KeyPart> parts;
    private final boolean ignoreCase;
    private final int ipv6Prefix;

    /**
     * @param parts of the policy's key
     * @param ignoreCase whether keys that differ in case alone are one
     * @param ipv6Prefix the bits of an IPv6 address that count
     */
    public OverrideKeys(List<KeyPart> parts, boolean ignoreCase, int ipv6Prefix) {
        this.parts = List.copyOf(parts);
        this.ignoreCase = ignoreCase;
        this.ipv6Prefix = ipv6Prefix;
    }

    /**
     * The key of these texts, one for each part.
     *
     * @throws IllegalArgumentException if there are not as many, or one could never equal what a request has
     */
    public OverriddenKey read(List<String> texts) {
        if (texts.size() != parts.size()) {
            throw new IllegalArgumentException(shape(texts.size()));
        }
        String[] read = new String[texts.size()];
        IpNetwork network = null;
        for (int i = 0; i < read.length; i++) {
            if (texts.get(i).isBlank()) {
                throw new IllegalArgumentException(parts.get(i).name() + " must be more than blanks");
            }
            if (parts.get(i).name().equals("ip")) {
                network = network(texts.get(i));
                read[i] = network == null ? address(texts.get(i)) : "";
            } else {
                read[i] = text(parts.get(i), texts.get(i));
            }
        }
        return new OverriddenKey(network, Keys.join(read));
    }

    private String shape(int size) {
        List<String> names = KeyPart.names(parts);
        String one = names.size() == 1
                ? "one text, the " + names.get(0)
                : "a list of " + names.size() + " texts: [" + String.join(", ", names) + "]";
        return "each of 'keys' must be " + one + ", as the policy's key is, but was "
                + (size == 1 ? "one text" : "a list of " + size);
    }

    private String text(KeyPart part, String text) {
        if (!part.name().equals("method")) {
            return Keys.part(text, ignoreCase);
        }
        String method = KeyPart.methodOf(text);
        if (method.equals("other") && !text.equals("other")) {
            throw new IllegalArgumentException("'" + text + "' is no method that HTTP defines: say 'GET', for example,"
                    + " or 'other' for all that it doesn't");
        }
        return Keys.part(method, ignoreCase);
    }

    /** The network, or null for one client, which in IPv6 is a network itself. */
    private @Nullable IpNetwork network(String text) {
        IpNetwork network = IpNetwork.of(text);
        if (network.isAddress()) {
            return null;
        }
        if (!network.first().isIpv4() && network.prefix() > ipv6Prefix) {
            throw new IllegalArgumentException("'" + text + "' is smaller than what counts as one client: say '"
                    + network.first().network(ipv6Prefix) + "', or raise 'ratelimit.client-ip.ipv6-prefix'");
        }
        return network.first().isIpv4() || network.prefix() < ipv6Prefix ? network : null;
    }

    private String address(String text) {
        return Keys.part(IpNetwork.of(text).first().text(ipv6Prefix), ignoreCase);
    }
}
