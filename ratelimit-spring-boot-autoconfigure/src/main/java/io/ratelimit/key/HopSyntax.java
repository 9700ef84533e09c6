package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/** How a forwarding header lists the hops of a request. Read from the right: the nearest wrote last. */
enum HopSyntax {
    /** One address, as in {@code CF-Connecting-IP}. */
    SINGLE {
        @Override
        int start(String line, int end) {
            return 0;
        }
    },

    /** Addresses with commas between them, as in {@code X-Forwarded-For}. */
    LIST {
        @Override
        int start(String line, int end) {
            return end == 0 ? 0 : line.lastIndexOf(',', end - 1) + 1;
        }
    },

    /** The elements of RFC 7239: {@code for="[2001:db8::1]:443";proto=https, for=192.0.2.1}. */
    FORWARDED {
        /** What a client sent before the last element has no say in where that begins: quotes are matched from its end. */
        @Override
        int start(String line, int end) {
            boolean quoted = false;
            for (int i = end - 1; i >= 0; i--) {
                char c = line.charAt(i);
                if (c == '"' && !isEscaped(line, i)) {
                    quoted = !quoted;
                } else if (c == ',' && !quoted) {
                    return i + 1;
                }
            }
            return 0;
        }

        @Override
        @Nullable
        IpAddress address(String line, int start, int end) {
            IpAddress found = null;
            for (int from = start; from < end; ) {
                int to = endOfPair(line, from, end);
                int name = skipBlanks(line, from, to);
                if (line.regionMatches(true, name, FOR, 0, FOR.length())) {
                    if (found != null) {
                        return null;
                    }
                    found = value(line, name + FOR.length(), to);
                    if (found == null) {
                        return null;
                    }
                }
                from = to + 1;
            }
            return found;
        }
    };

    private static final String FOR = "for=";

    /** Where the last hop of a line begins, of those before {@code end}; a comma is before it, if anything is. */
    abstract int start(String line, int end);

    /** The address of a hop; null if it has none, or hides it, or can't be read. */
    @Nullable
    IpAddress address(String line, int start, int end) {
        int from = skipBlanks(line, start, end);
        return IpReader.read(line, from, skipBlanksBack(line, from, end));
    }

    private static @Nullable IpAddress value(String line, int start, int end) {
        int to = skipBlanksBack(line, start, end);
        boolean quoted = start + 1 < to && line.charAt(start) == '"' && line.charAt(to - 1) == '"';
        return quoted ? IpReader.read(line, start + 1, to - 1) : IpReader.read(line, start, to);
    }

    /** The next semicolon that is not in quotes, or the end. */
    private static int endOfPair(String line, int from, int end) {
        boolean quoted = false;
        for (int i = from; i < end; i++) {
            char c = line.charAt(i);
            if (c == '"' && !isEscaped(line, i)) {
                quoted = !quoted;
            } else if (c == ';' && !quoted) {
                return i;
            }
        }
        return end;
    }

    private static boolean isEscaped(String line, int quote) {
        int i = quote;
        while (i > 0 && line.charAt(i - 1) == '\\') {
            i--;
        }
        return (quote - i) % 2 == 1;
    }

    private static int skipBlanks(String line, int from, int end) {
        int i = from;
        while (i < end && isBlank(line.charAt(i))) {
            i++;
        }
        return i;
    }

    private static int skipBlanksBack(String line, int from, int end) {
        int i = end;
        while (i > from && isBlank(line.charAt(i - 1))) {
            i--;
        }
        return i;
    }

    private static boolean isBlank(char c) {
        return c == ' ' || c == '\t';
    }
}
