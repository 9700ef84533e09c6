package io.ratelimit.web.servlet;

import io.ratelimit.key.KeyPart;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;

/** The source of a request's actual cost, which is known when the work is done. Immutable. */
public final class Settle {

    private static final String CODE = "code";
    private static final String ATTRIBUTE = "attribute:";
    private static final String RESPONSE_HEADER = "response-header:";

    private final String text;
    private final String name;

    private Settle(String text, String name) {
        this.text = text;
        this.name = name;
    }

    /**
     * Parses {@code attribute:NAME}, {@code response-header:NAME} or {@code code}.
     *
     * @throws IllegalArgumentException if the text has another form, or a header has no valid name
     */
    public static Settle of(String text) {
        String stripped = text.strip();
        if (stripped.equals(CODE)) {
            return new Settle(CODE, "");
        }
        for (String prefix : new String[] {ATTRIBUTE, RESPONSE_HEADER}) {
            String name = stripped.startsWith(prefix)
                    ? stripped.substring(prefix.length()).strip()
                    : "";
            if (!name.isEmpty() && (prefix.equals(ATTRIBUTE) || KeyPart.isToken(name))) {
                return new Settle(prefix + name, name);
            }
        }
        throw new IllegalArgumentException(
                "settle must be 'attribute:NAME', 'response-header:NAME' or 'code', but was '" + text + "'");
    }

    /** Returns whether the application's code sets the cost. */
    boolean isByCode() {
        return text.equals(CODE);
    }

    /**
     * Returns the value that is read as the actual cost of a request; null if there is none. The headers of a rejection,
     * such as that of an annotated method that the handler calls, are no costs.
     *
     * @param reported the cost that the application's code set
     */
    @Nullable
    Object find(HttpServletRequest request, HttpServletResponse response, @Nullable Long reported) {
        if (isByCode()) {
            return reported;
        }
        if (text.startsWith(ATTRIBUTE)) {
            return request.getAttribute(name);
        }
        return Rejections.isRejected(request) ? null : response.getHeader(name);
    }

    /** Returns the source as it is configured. */
    @Override
    public String toString() {
        return text;
    }
}
