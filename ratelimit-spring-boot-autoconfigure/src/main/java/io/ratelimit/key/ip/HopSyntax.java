package io.ratelimit.key.ip;

import org.jspecify.annotations.Nullable;

/** The syntax in which a forwarding header lists the hops of a request. The nearest hop is the last. */
enum HopSyntax {
    /** A single address, as in {@code CF-Connecting-IP}. */
    SINGLE,

    /** Addresses separated by commas, as in {@code X-Forwarded-For}. */
    LIST,

    /** The elements of RFC 7239: {@code for="[2001:db8::1]:443";proto=https, for=192.0.2.1}. */
    FORWARDED;

    private static final String FOR = "for=";

    /** Returns the start of the last hop before {@code end}; it is 0, or the index after a comma. */
    int start(String line, int end) {
        return this == FORWARDED
                ? startOfElement(line, end)
                : this == LIST && end > 0 ? line.lastIndexOf(',', end - 1) + 1 : 0;
    }

    /** Matches quotes from the end, so that text of a client before the last element can't move the element's start. */
    private static int startOfElement(String line, int end) {
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

    /** Returns the address of a hop; null if the hop has none, hides it or can't be read. */
    @Nullable
    IpAddress address(String line, int start, int end) {
        if (this == FORWARDED) {
            return addressOfElement(line, start, end);
        }
        int from = skipBlanks(line, start, end);
        return IpAddressReader.read(line, from, skipBlanksBack(line, from, end));
    }

    private static @Nullable IpAddress addressOfElement(String line, int start, int end) {
        IpAddress address = null;
        for (int from = start; from < end; ) {
            int to = endOfPair(line, from, end);
            int name = skipBlanks(line, from, to);
            if (line.regionMatches(true, name, FOR, 0, FOR.length())) {
                if (address != null) {
                    return null;
                }
                address = value(line, name + FOR.length(), to);
                if (address == null) {
                    return null;
                }
            }
            from = to + 1;
        }
        return address;
    }

    private static @Nullable IpAddress value(String line, int start, int end) {
        int to = skipBlanksBack(line, start, end);
        boolean quoted = start + 1 < to && line.charAt(start) == '"' && line.charAt(to - 1) == '"';
        return quoted ? IpAddressReader.read(line, start + 1, to - 1) : IpAddressReader.read(line, start, to);
    }

    /** Returns the index of the next semicolon outside quotes, or the end. */
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
