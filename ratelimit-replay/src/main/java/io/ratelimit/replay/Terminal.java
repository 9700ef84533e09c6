package io.ratelimit.replay;

/** Texts as a terminal may show them. Clients choose the texts of a log, and a terminal executes control characters. */
final class Terminal {

    private Terminal() {}

    /**
     * Returns the text with escapes, such as {@code \x1b} or {@code \u202e}, in place of control characters, line separators,
     * and invisible characters such as those that change the direction of a text.
     */
    static String escape(String text) {
        if (text.codePoints().noneMatch(Terminal::isHarmful)) {
            return text;
        }
        StringBuilder escaped = new StringBuilder();
        text.codePoints().forEach(c -> {
            if (isHarmful(c)) {
                escaped.append(String.format(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\u{%x}", c));
            } else {
                escaped.appendCodePoint(c);
            }
        });
        return escaped.toString();
    }

    private static boolean isHarmful(int c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR,
                    Character.SURROGATE -> true;
            default -> false;
        };
    }
}
