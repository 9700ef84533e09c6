package io.ratelimit.policy;

import io.ratelimit.key.KeyPart;

/**
 * The source of a request's actual cost, which is known when the work is done.
 *
 * @param name the name of the attribute or the header; empty for the application's code
 */
public record Settle(Source source, String name) {

    /** The places of an actual cost. */
    public enum Source {
        /** An attribute of the request. */
        ATTRIBUTE("attribute:"),
        /** A header of the response. */
        RESPONSE_HEADER("response-header:"),
        /** The application's code, which sets the cost. */
        CODE("code");

        private final String prefix;

        Source(String prefix) {
            this.prefix = prefix;
        }
    }

    /**
     * Parses {@code attribute:NAME}, {@code response-header:NAME} or {@code code}.
     *
     * @throws IllegalArgumentException if the text has another form, or a header has no valid name
     */
    public static Settle of(String text) {
        String stripped = text.strip();
        for (Source source : Source.values()) {
            String name = stripped.startsWith(source.prefix)
                    ? stripped.substring(source.prefix.length()).strip()
                    : "";
            boolean valid =
                    switch (source) {
                        case ATTRIBUTE -> !name.isEmpty();
                        case RESPONSE_HEADER -> KeyPart.isToken(name);
                        case CODE -> stripped.equals(source.prefix);
                    };
            if (valid) {
                return new Settle(source, name);
            }
        }
        throw new IllegalArgumentException(
                "settle must be 'attribute:NAME', 'response-header:NAME' or 'code', but was '" + text + "'");
    }

    /** Returns whether the application's code sets the cost. */
    public boolean isByCode() {
        return source == Source.CODE;
    }

    /** Returns the source as it is configured. */
    @Override
    public String toString() {
        return source.prefix + name;
    }
}
