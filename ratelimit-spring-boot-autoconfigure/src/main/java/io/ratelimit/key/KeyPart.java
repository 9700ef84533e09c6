package io.ratelimit.key;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;

/**
 * One part of a policy's key.
 *
 * @param name as it is written, such as {@code ip} or {@code header:x-api-key}
 * @param resolver reads it from a request
 * @param known how early it can be read
 * @param chosenByClient whether a client can send what it likes
 */
public record KeyPart(String name, KeyResolver resolver, Known known, boolean chosenByClient) {

    private static final String PARTS = "ip, user, endpoint, method, session, header:NAME, cookie:NAME, query:NAME,"
            + " path-variable:NAME, bean:NAME or expression:SPEL";
    private static final String BEAN = "bean:";
    private static final Set<String> METHODS =
            Set.of("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT");

    /** The names of parts, in their order. */
    public static List<String> names(List<KeyPart> parts) {
        List<String> names = new ArrayList<>(parts.size());
        for (KeyPart part : parts) {
            names.add(part.name);
        }
        return names;
    }

    /**
     * Reads a part as it is written. One that names a bean can't be resolved before it {@linkplain #withBean has it}.
     *
     * @throws IllegalArgumentException if there is no such part; the message names those that there are
     */
    public static KeyPart of(String text) {
        return switch (text) {
            case "ip" -> new KeyPart(text, RequestFacts::ip, Known.AT_ONCE, false);
            case "user" -> new KeyPart(text, RequestFacts::user, Known.WITH_USER, false);
            case "endpoint" -> new KeyPart(text, RequestFacts::endpoint, Known.AT_ONCE, false);
            case "method" -> new KeyPart(text, request -> methodOf(request.method()), Known.AT_ONCE, false);
            case "session" -> new KeyPart(text, RequestFacts::session, Known.PERHAPS_LATER, true);
            default -> named(text, text.indexOf(':') + 1);
        };
    }

    private static KeyPart named(String text, int afterColon) {
        String name = text.substring(afterColon);
        return switch (text.substring(0, afterColon)) {
            case "header:" -> {
                check(isToken(name), text, "header", "header:X-Api-Key");
                yield sent("header:" + name.toLowerCase(Locale.ROOT), request -> request.header(name));
            }
            case "cookie:" -> {
                check(isToken(name), text, "cookie", "cookie:device");
                yield sent(text, request -> request.cookie(name));
            }
            case "query:" -> {
                check(!name.isBlank(), text, "parameter", "query:tenant");
                yield sent(text, request -> request.query(name));
            }
            case "path-variable:" -> {
                check(isVariable(name), text, "path variable", "path-variable:tenant");
                yield sent(text, request -> request.pathVariable(name));
            }
            case BEAN -> {
                check(!name.isBlank(), text, "bean", "bean:tenantKey");
                yield new KeyPart(text, unresolved(text), Known.PERHAPS_LATER, false);
            }
            case "expression:" -> expression(text, parse(name));
            default -> throw new IllegalArgumentException("'" + text + "' is not a part of a key: say " + PARTS);
        };
    }

    private static KeyPart sent(String name, KeyResolver resolver) {
        return new KeyPart(name, resolver, Known.AT_ONCE, true);
    }

    private static KeyPart expression(String text, RequestExpression expression) {
        return new KeyPart(text, expression::text, expression.known(), expression.chosenByClient());
    }

    private static RequestExpression parse(String spel) {
        try {
            return RequestExpression.of(spel);
        } catch (IllegalArgumentException refused) {
            boolean open = spel.chars().filter(c -> "({".indexOf(c) >= 0).count()
                    > spel.chars().filter(c -> ")}".indexOf(c) >= 0).count();
            if (!open) {
                throw refused;
            }
            throw new IllegalArgumentException(
                    refused.getMessage() + ". If it was cut at a comma, write the key as a list: [\"expression:...\"]");
        }
    }

    private static KeyResolver unresolved(String text) {
        return request -> {
            throw new IllegalStateException("'" + text + "' has not been resolved");
        };
    }

    /** The part with the bean that it names; itself if it names none. */
    public KeyPart withBean(Function<String, KeyResolver> beans) {
        return name.startsWith(BEAN)
                ? new KeyPart(name, beans.apply(name.substring(BEAN.length())), known, chosenByClient)
                : this;
    }

    /** HEAD is GET; what HTTP doesn't define is one method, or each invented one would have a bucket of its own. */
    static String methodOf(String method) {
        if (method.equals("HEAD")) {
            return "GET";
        }
        return METHODS.contains(method) ? method : "other";
    }

    private static void check(boolean named, String text, String kind, String example) {
        if (!named) {
            throw new IllegalArgumentException(
                    "'" + text + "' has no " + kind + "'s name after the colon: say '" + example + "'");
        }
    }

    /** Whether a header may have this name. */
    public static boolean isToken(String text) {
        return !text.isEmpty()
                && text.chars().allMatch(c -> c > ' ' && c < 127 && "\"(),/:;<=>?@[\\]{}".indexOf(c) < 0);
    }

    /** As path patterns have them between braces. */
    private static boolean isVariable(String text) {
        return !text.isEmpty() && text.chars().allMatch(c -> Character.isJavaIdentifierPart(c) || c == '-' || c == '.');
    }
}
