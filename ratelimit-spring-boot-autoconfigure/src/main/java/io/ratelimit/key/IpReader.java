package io.ratelimit.key;

import org.jspecify.annotations.Nullable;

/**
 * Reads the literal forms of RFC 4291 and dotted IPv4, with a port, brackets or a zone where they may be. Never resolves
 * a name, and looks at no more than a literal can have. A reader reads one IPv6 address.
 */
final class IpReader {

    private static final int GROUPS = 8;

    /** Brackets, an address with an IPv4 tail, a port, and room for a zone. */
    private static final int LONGEST = 80;

    private final String text;
    private final int end;
    private int at;
    private int groups;
    private long high;
    private long low;
    private @Nullable IpAddress head;

    private IpReader(String text, int from, int to) {
        this.text = text;
        this.at = from;
        this.end = to;
    }

    /** The address in a part of the text, also {@code 192.0.2.1:80}, {@code [2001:db8::1]:443}; null if it is none. */
    static @Nullable IpAddress read(String text, int from, int to) {
        if (to - from > LONGEST || to <= from) {
            return null;
        }
        if (text.charAt(from) == '[') {
            int close = indexOf(']', text, from, to);
            return close < to && isPort(text, close + 1, to) ? ipv6(text, from + 1, close) : null;
        }
        int colon = indexOf(':', text, from, to);
        return indexOf(':', text, colon + 1, to) < to
                ? ipv6(text, from, to)
                : isPort(text, colon, to) ? IpAddress.ofIpv4(ipv4(text, from, colon)) : null;
    }

    /** Dotted IPv4 as its 32 bits, or -1. A number has no leading zero: some read octal. */
    static long ipv4(String text, int from, int to) {
        long bits = 0;
        int dots = 0;
        int number = -1;
        for (int i = from; i < to; i++) {
            char c = text.charAt(i);
            if (c >= '0' && c <= '9' && number != 0) {
                number = (number < 0 ? 0 : number * 10) + c - '0';
            } else if (c == '.' && number >= 0 && ++dots < 4) {
                bits = bits << 8 | number;
                number = -1;
            } else {
                return -1;
            }
            if (number > 255) {
                return -1;
            }
        }
        return dots == 3 && number >= 0 ? bits << 8 | number : -1;
    }

    /** Where a character is first, or {@code to}. */
    private static int indexOf(char c, String text, int from, int to) {
        for (int i = from; i < to; i++) {
            if (text.charAt(i) == c) {
                return i;
            }
        }
        return to;
    }

    /** Whether this is nothing, a port, or one that a proxy hides, as RFC 7239 has them. */
    private static boolean isPort(String text, int from, int to) {
        if (from >= to) {
            return true;
        }
        boolean hidden = from + 1 < to && text.charAt(from + 1) == '_';
        for (int i = from + 1; i < to; i++) {
            char c = text.charAt(i);
            boolean digit = c >= '0' && c <= '9';
            if (!digit && !(hidden && (Character.isLetter(c) && c < 128 || c == '_' || c == '.' || c == '-'))) {
                return false;
            }
        }
        return text.charAt(from) == ':' && from + 1 < to && (hidden || to - from <= 6);
    }

    private static @Nullable IpAddress ipv6(String text, int from, int to) {
        return new IpReader(text, from, indexOf('%', text, from, to)).ipv6();
    }

    private @Nullable IpAddress ipv6() {
        if (at + 1 < end && text.startsWith("::", at)) {
            at++;
            readGap();
        }
        while (at < end || groups == 0 && head == null) {
            if (groups == GROUPS || !readGroup() || !readColon()) {
                return null;
            }
        }
        IpAddress left = head;
        if (left == null) {
            return groups == GROUPS ? new IpAddress(high, low) : null;
        }
        return groups < GROUPS ? new IpAddress(left.high() | high, left.low() | low) : null;
    }

    /** Up to four hexadecimal digits, or what is left as dotted IPv4. */
    private boolean readGroup() {
        int start = at;
        long group = 0;
        while (at < end && at < start + 4 && Character.digit(text.charAt(at), 16) >= 0 && text.charAt(at) < 128) {
            group = group << 4 | Character.digit(text.charAt(at++), 16);
        }
        if (at < end && text.charAt(at) == '.') {
            return readIpv4(start);
        }
        add(group);
        return at > start;
    }

    private boolean readIpv4(int start) {
        long bits = ipv4(text, start, end);
        at = end;
        add(bits >>> 16);
        add(bits & 0xffff);
        return bits >= 0 && groups <= GROUPS;
    }

    private void add(long group) {
        shift(group);
        groups++;
    }

    private void shift(long group) {
        high = high << 16 | low >>> 48;
        low = low << 16 | group;
    }

    /** What parts two groups; at the end it is nothing. */
    private boolean readColon() {
        if (at == end) {
            return true;
        }
        if (text.charAt(at++) != ':') {
            return false;
        }
        return at < end && (text.charAt(at) != ':' || readGap());
    }

    /** What is before the gap goes to the left end; there is one gap at most. */
    private boolean readGap() {
        boolean first = head == null;
        for (int i = groups; i < GROUPS; i++) {
            shift(0);
        }
        head = new IpAddress(high, low);
        high = 0;
        low = 0;
        at++;
        return first;
    }
}
