package io.ratelimit.key;

import io.ratelimit.Keys;
import java.security.Principal;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One part of a policy's key.
 *
 * @param name the text of the configuration, such as {@code ip} or {@code header:x-api-key}
 * @param resolver reads the part from a request
 * @param availability when the part can be read
 * @param chosenByClient whether a client can choose the text
 */
public record KeyPart(String name, KeyResolver resolver, Availability availability, boolean chosenByClient) {

    /**
     * The moment from which a fact of a request is available; a policy that depends on the fact can't decide before.
     */
    public enum Availability {
        /** Before authentication: the request itself contains the fact. */
        IMMEDIATE,
        /** Before authentication, which may change it: a login changes the session, and a bean may read the user. */
        MAY_CHANGE,
        /** After authentication: the fact is about the user. */
        NEEDS_USER
    }

    private static final String ENDPOINT = "endpoint";
    private static final String PARTS = "ip, user, endpoint, method, session, header:NAME, cookie:NAME, query:NAME,"
            + " path-variable:NAME, claim:NAME, bean:NAME or expression:SPEL";
    private static final String BEAN = "bean:";
    private static final String EXPRESSION = "expression:";
    private static final Set<String> METHODS =
            Set.of("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT");

    /** Returns the names of parts, in the same order. */
    public static List<String> names(List<KeyPart> parts) {
        List<String> names = new ArrayList<>();
        for (KeyPart part : parts) {
            names.add(part.name());
        }
        return List.copyOf(names);
    }

    /**
     * Parses a part. A part that names a bean fails until it {@linkplain #withBeans has it}.
     *
     * @throws IllegalArgumentException if the text is no part; the message lists the parts
     */
    public static KeyPart of(String text) {
        return switch (text) {
            case "ip" -> new KeyPart(text, RequestFacts::ip, Availability.IMMEDIATE, false);
            case "user" -> new KeyPart(text, RequestFacts::user, Availability.NEEDS_USER, false);
            case ENDPOINT -> new KeyPart(text, RequestFacts::endpoint, Availability.IMMEDIATE, false);
            case "method" -> new KeyPart(text, request -> methodOf(request.method()), Availability.IMMEDIATE, false);
            case "session" -> new KeyPart(text, RequestFacts::session, Availability.MAY_CHANGE, true);
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
            case "claim:" -> {
                check(!name.isBlank(), text, "claim", "claim:tenant");
                yield new KeyPart(text, request -> request.claim(name), Availability.NEEDS_USER, false);
            }
            case BEAN -> {
                check(!name.isBlank(), text, "bean", "bean:tenantKey");
                yield new KeyPart(text, unresolved(text), Availability.MAY_CHANGE, false);
            }
            case EXPRESSION -> expression(text, parse(name));
            default -> throw new IllegalArgumentException("'" + text + "' is not a part of a key: write " + PARTS);
        };
    }

    private static KeyPart sent(String name, KeyResolver resolver) {
        return new KeyPart(name, resolver, Availability.IMMEDIATE, true);
    }

    private static KeyPart expression(String text, RequestExpression expression) {
        return new KeyPart(text, expression::text, expression.availability(), expression.chosenByClient());
    }

    private static RequestExpression parse(String spel) {
        try {
            return RequestExpression.of(spel);
        } catch (IllegalArgumentException unreadable) {
            boolean isCut = count("({", spel) > count(")}", spel);
            if (!isCut) {
                throw unreadable;
            }
            throw new IllegalArgumentException(unreadable.getMessage()
                    + ". If it was cut at a comma, write the key as a list: [\"expression:...\"]");
        }
    }

    private static long count(String characters, String text) {
        return text.chars().filter(c -> characters.indexOf(c) >= 0).count();
    }

    private static KeyResolver unresolved(String text) {
        return request -> {
            throw new IllegalStateException("'" + text + "' has not been resolved");
        };
    }

    /** Returns this part with the beans that it names; itself if it names none. */
    public KeyPart withBeans(Function<String, KeyResolver> beans) {
        if (name.startsWith(EXPRESSION)) {
            return expression(name, parse(name.substring(EXPRESSION.length())).withBeans(beans));
        }
        return name.startsWith(BEAN)
                ? new KeyPart(name, beans.apply(name.substring(BEAN.length())), availability, chosenByClient)
                : this;
    }

    /**
     * Returns the method as a key has it: GET for HEAD, and {@code other} for each method that HTTP doesn't define.
     * Otherwise each invented method would have a bucket of its own.
     */
    public static String methodOf(String method) {
        if (method.equals("HEAD")) {
            return "GET";
        }
        return METHODS.contains(method) ? method : "other";
    }

    /** Returns the name of a user as a key has it; null without a user, and for a user whose name may change. */
    public static @Nullable String userOf(@Nullable Principal user) {
        return UserName.find(user);
    }

    String part(String text, boolean ignoreCase, RequestFacts request) {
        return ignoreCase && name.equals(ENDPOINT) ? request.foldedEndpoint() : Keys.part(text, ignoreCase);
    }

    private static void check(boolean valid, String text, String kind, String example) {
        if (!valid) {
            throw new IllegalArgumentException(
                    "'" + text + "' needs the name of a " + kind + " after the colon: write '" + example + "'");
        }
    }

    /** Returns whether the text is a valid name of a header. */
    public static boolean isToken(String text) {
        boolean isToken = !text.isEmpty();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            isToken &= c > ' ' && c < 127 && "\"(),/:;<=>?@[\\]{}".indexOf(c) < 0;
        }
        return isToken;
    }

    private static boolean isVariable(String text) {
        return !text.isEmpty() && text.chars().allMatch(c -> Character.isJavaIdentifierPart(c) || c == '-' || c == '.');
    }
}
