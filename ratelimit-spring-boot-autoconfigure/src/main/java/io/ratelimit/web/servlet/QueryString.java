package io.ratelimit.web.servlet;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * A reader of query parameters in UTF-8. Unlike a container's, it never reads parameters from the body: the body belongs to
 * the application, and may be large.
 */
final class QueryString {

    private QueryString() {}

    /** Returns the first value of a parameter, or null if it is missing or can't be decoded. */
    static @Nullable String first(String name, @Nullable String query) {
        int start = 0;
        while (query != null && start <= query.length()) {
            int ampersand = query.indexOf('&', start);
            int end = ampersand < 0 ? query.length() : ampersand;
            int nameEnd = nameEnd(query, start, end);
            if (isNamed(name, query, start, nameEnd)) {
                return decode(query.substring(Math.min(nameEnd + 1, end), end));
            }
            start = end + 1;
        }
        return null;
    }

    /**
     * Returns the index of the first {@code =} of one parameter, or its end. {@code indexOf} would search the whole rest of
     * the query string for each parameter without a value.
     */
    private static int nameEnd(String query, int start, int end) {
        int at = start;
        while (at < end && query.charAt(at) != '=') {
            at++;
        }
        return at;
    }

    /** Compares ASCII names without decoding them into strings: a query string has room for a thousand names. */
    private static boolean isNamed(String name, String query, int start, int end) {
        int at = 0;
        for (int i = start; i < end; i++, at++) {
            int c = query.charAt(i);
            if (at == name.length() || c == '=') {
                return at == name.length() && c == '=';
            }
            if (c == '%') {
                c = escaped(query, i, end);
                i += 2;
            } else if (c == '+') {
                c = ' ';
            }
            if (c != name.charAt(at)) {
                boolean unicode = c >= 128 && name.charAt(at) >= 128;
                return unicode && name.equals(decode(query.substring(start, nameEnd(query, start, end))));
            }
        }
        return at == name.length();
    }

    /** Returns the byte of an escape such as {@code %61}, or -1 for a malformed escape. */
    private static int escaped(String query, int percent, int end) {
        int high = percent + 2 < end ? Character.digit(query.charAt(percent + 1), 16) : -1;
        int low = high < 0 ? -1 : Character.digit(query.charAt(percent + 2), 16);
        return low < 0 ? -1 : high << 4 | low;
    }

    private static @Nullable String decode(String text) {
        try {
            return URLDecoder.decode(text, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }
}
