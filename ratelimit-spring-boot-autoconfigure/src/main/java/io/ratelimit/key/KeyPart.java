package io.ratelimit.key;

import java.util.Locale;
import java.util.Set;

/**
 * One part of a policy's key.
 *
 * @param name as it is written: {@code ip}, {@code user}, {@code endpoint}, {@code method} or {@code header:NAME}
 * @param resolver reads it from a request
 * @param needsUser whether it is known only after authentication
 * @param chosenByClient whether a client can send what it likes
 */
public record KeyPart(String name, KeyResolver resolver, boolean needsUser, boolean chosenByClient) {

    private static final String HEADER = "header:";
    private static final Set<String> METHODS =
            Set.of("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT");

    /**
     * Reads a part as it is written.
     *
     * @throws IllegalArgumentException if there is no such part; the message names those that there are
     */
    public static KeyPart of(String text) {
        return switch (text) {
            case "ip" -> new KeyPart(text, RequestFacts::ip, false, false);
            case "user" -> new KeyPart(text, RequestFacts::user, true, false);
            case "endpoint" -> new KeyPart(text, RequestFacts::endpoint, false, false);
            case "method" -> new KeyPart(text, request -> methodOf(request.method()), false, false);
            default -> named(text);
        };
    }

    private static KeyPart named(String text) {
        if (!text.startsWith(HEADER)) {
            throw new IllegalArgumentException(
                    "'" + text + "' is not a part of a key: say ip, user, endpoint, method or header:NAME");
        }
        String header = text.substring(HEADER.length());
        if (!isToken(header)) {
            throw new IllegalArgumentException(
                    "'" + text + "' has no header's name after the colon: say 'header:X-Api-Key'");
        }
        return new KeyPart(HEADER + header.toLowerCase(Locale.ROOT), request -> request.header(header), false, true);
    }

    /** HEAD is GET; what HTTP doesn't define is one method, or each invented one would have a bucket of its own. */
    static String methodOf(String method) {
        if (method.equals("HEAD")) {
            return "GET";
        }
        return METHODS.contains(method) ? method : "other";
    }

    /** Whether a header may have this name. */
    public static boolean isToken(String text) {
        return !text.isEmpty()
                && text.chars().allMatch(c -> c > ' ' && c < 127 && "\"(),/:;<=>?@[\\]{}".indexOf(c) < 0);
    }
}
