package io.ratelimit.policy;

import io.ratelimit.Keys;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.OverrideTable.Match;
import io.ratelimit.key.ip.ClientIp;
import io.ratelimit.key.ip.IpNetwork;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The parser of keys that are written as text: those of overrides and those of the actuator's {@code key} parameters.
 * Converts each text to the form that the part has for requests. Immutable.
 *
 * @param ipv6Prefix the number of leading bits that identify a client with an IPv6 address
 */
record KeyTexts(List<KeyPart> parts, boolean ignoreCase, int ipv6Prefix) {

    /**
     * Parses a key of an override. The messages of exceptions quote the text, which comes from the configuration.
     *
     * @throws IllegalArgumentException if the number of texts is wrong, or a text never equals that of a request
     */
    Match parseOverride(List<String> texts) {
        if (texts.size() != parts.size()) {
            throw new IllegalArgumentException(wrongOverrideSize(texts.size()));
        }
        String[] composed = new String[texts.size()];
        IpNetwork network = null;
        for (int i = 0; i < composed.length; i++) {
            String name = parts.get(i).name();
            String text = texts.get(i);
            if (text.isBlank()) {
                throw new IllegalArgumentException(name + " must be more than blanks");
            }
            if (name.equals("ip")) {
                IpNetwork parsed = network(text);
                String client = client(parsed);
                network = client == null ? parsed : null;
                text = client == null ? "" : client;
            } else if (name.equals("method")) {
                text = method(
                        text,
                        "'" + text
                                + "' is not an HTTP method: write 'GET', for example, or 'other' for all methods that"
                                + " HTTP doesn't define");
            }
            composed[i] = Keys.part(text, ignoreCase);
        }
        return new Match(network, Keys.join(composed));
    }

    private String wrongOverrideSize(int size) {
        List<String> names = KeyPart.names(parts);
        String expected = names.size() == 1
                ? "one text, the " + names.get(0)
                : "a list of " + names.size() + " texts: [" + String.join(", ", names) + "]";
        return "each of 'keys' must be " + expected + ", as the policy's key is, but was "
                + (size == 1 ? "one text" : "a list of " + size)
                + (": write 'keys: [" + (names.size() == 1 ? "%s" : "[%s]") + "]', for example")
                        .formatted(names.stream().map(KeyTexts::example).collect(Collectors.joining(", ")));
    }

    private static String example(String part) {
        return switch (part) {
            case "ip" -> "192.0.2.7";
            case "user" -> "bob";
            case "method" -> "GET";
            case "endpoint" -> "\"GET /items/{id}\"";
            default -> "acme";
        };
    }

    private IpNetwork network(String text) {
        IpNetwork network = IpNetwork.of(text);
        if (network.isPartOfClient(ipv6Prefix)) {
            throw new IllegalArgumentException("'" + text + "' is smaller than the network of one client: write '"
                    + network.clientText(ipv6Prefix) + "', or raise 'ratelimit.client-ip.ipv6-prefix'");
        }
        return network;
    }

    /**
     * Parses the key of one bucket. The messages of exceptions never quote the text, which may be personal data.
     *
     * @param texts one text for each part, none blank
     * @param endpoints the names of the application's endpoints; read only for a key with an endpoint
     * @throws IllegalArgumentException if the number of texts is wrong, or a text never equals that of a request
     */
    List<String> parse(List<String> texts, Collection<String> endpoints) {
        checkSize(KeyPart.names(parts), texts.size());
        String[] parsed = new String[texts.size()];
        for (int i = 0; i < parsed.length; i++) {
            String text = texts.get(i);
            parsed[i] = switch (parts.get(i).name()) {
                case "ip" -> clientIp(text);
                case "method" ->
                    method(
                            text,
                            "the method of the key must be one that HTTP defines, in capital letters, or 'other' for all"
                                    + " others");
                case "endpoint" -> endpoint(text, endpoints);
                default -> text;
            };
        }
        return List.of(parsed);
    }

    /** @throws IllegalArgumentException if a key of these parts has another number of texts */
    static void checkSize(List<String> parts, int size) {
        if (size != parts.size()) {
            throw new IllegalArgumentException(
                    parts.isEmpty()
                            ? "the policy is global: it has one bucket and no 'key'"
                            : "pass " + parts.size() + (parts.size() == 1 ? " 'key' (" : " 'key's (")
                                    + String.join(", ", parts) + "), not " + size);
        }
    }

    private String clientIp(String text) {
        String client = null;
        try {
            client = text.equals(ClientIp.NONE) ? text : client(IpNetwork.of(text));
        } catch (IllegalArgumentException unreadable) {
            // its message quotes the text
        }
        if (client == null) {
            throw new IllegalArgumentException("the ip of the key must be an address, such as '192.0.2.7' or"
                    + " '2001:db8::1', or '" + ClientIp.NONE + "' for requests without one");
        }
        return client;
    }

    private String endpoint(String text, Collection<String> endpoints) {
        if (!text.equals("none") && endpoints.stream().noneMatch(name -> isEqual(name, text))) {
            throw new IllegalArgumentException("the endpoint of the key must be one of the application's, such as '"
                    + endpoints.stream().findFirst().orElse("GET /items/{id}")
                    + "', or 'none' for requests without one");
        }
        return text;
    }

    private boolean isEqual(String name, String text) {
        return ignoreCase ? name.equalsIgnoreCase(text) : name.equals(text);
    }

    /** Returns the client that the network identifies, in canonical form; null for a network of several clients. */
    private @Nullable String client(IpNetwork network) {
        return network.isClient(ipv6Prefix) ? network.clientText(ipv6Prefix) : null;
    }

    /** Returns the method as a key has it; throws with this message for a text that HTTP doesn't define as a method. */
    private static String method(String text, String message) {
        String method = KeyPart.methodOf(text);
        if (method.equals("other") && !text.equals(method)) {
            throw new IllegalArgumentException(message);
        }
        return method;
    }
}
