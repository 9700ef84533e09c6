package io.ratelimit.web.servlet;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * Reads parameters of a query string as containers do, in UTF-8, but without the body that they would read as well: it
 * belongs to the application, and may be large.
 */
final class QueryString {

    private QueryString() {}

    /** The first value of a parameter: null if there is none, or one that can't be decoded. */
    static @Nullable String first(String name, @Nullable String query) {
        int start = 0;
        while (query != null && start <= query.length()) {
            int and = query.indexOf('&', start);
            int end = and < 0 ? query.length() : and;
            int equals = query.indexOf('=', start);
            int nameEnd = equals < 0 || equals > end ? end : equals;
            if (isNamed(name, query, start, nameEnd)) {
                return decode(query.substring(Math.min(nameEnd + 1, end), end));
            }
            start = end + 1;
        }
        return null;
    }

    /** Most names are as they are sent; only those with an escape are decoded. */
    private static boolean isNamed(String name, String query, int start, int end) {
        for (int i = start; i < end; i++) {
            char c = query.charAt(i);
            if (c == '%' || c == '+') {
                return name.equals(decode(query.substring(start, end)));
            }
            if (i - start >= name.length() || c != name.charAt(i - start)) {
                return false;
            }
        }
        return end - start == name.length();
    }

    private static @Nullable String decode(String text) {
        try {
            return URLDecoder.decode(text, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException malformed) {
            return null;
        }
    }
}
