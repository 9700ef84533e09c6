package io.ratelimit.key.ip;

import org.jspecify.annotations.Nullable;

/**
 * A parser for the literal forms of RFC 4291 and dotted IPv4, with an optional port, brackets or zone. Never resolves a
 * name, and rejects a text that is too long for a literal before reading it. An instance parses one IPv6 address.
 */
final class IpAddressReader {

    private static final int GROUPS = 8;

    /** Brackets, an address with an IPv4 tail, a port, and room for a zone. */
    private static final int MAX_LENGTH = 80;

    private final String text;
    private final int end;
    private int position;
    private int groups;
    private long high;
    private long low;
    private @Nullable IpAddress head;

    private IpAddressReader(String text, int from, int to) {
        this.text = text;
        this.position = from;
        this.end = to;
    }

    /** Parses a range of a text, such as {@code 192.0.2.1:80} or {@code [2001:db8::1]:443}; returns null if it is no address. */
    static @Nullable IpAddress read(String text, int from, int to) {
        if (to - from > MAX_LENGTH || to <= from) {
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

    /** Parses dotted IPv4; returns its 32 bits, or -1. Rejects leading zeros, which some parsers read as octal. */
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

    /** Returns the first index of a character, or {@code to}. */
    private static int indexOf(char c, String text, int from, int to) {
        for (int i = from; i < to; i++) {
            if (text.charAt(i) == c) {
                return i;
            }
        }
        return to;
    }

    /** Returns whether the range is empty, or a port after a colon: a number or an obfuscated one of RFC 7239. */
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
        return new IpAddressReader(text, from, indexOf('%', text, from, to)).ipv6();
    }

    private @Nullable IpAddress ipv6() {
        if (position + 1 < end && text.startsWith("::", position)) {
            position++;
            readGap();
        }
        while (position < end || groups == 0 && head == null) {
            if (groups == GROUPS || !readGroup() || !readColon()) {
                return null;
            }
        }
        IpAddress start = head;
        if (start == null) {
            return groups == GROUPS ? new IpAddress(high, low) : null;
        }
        return groups < GROUPS ? new IpAddress(start.high() | high, start.low() | low) : null;
    }

    /** Reads up to four hexadecimal digits, or the rest of the text as dotted IPv4. */
    private boolean readGroup() {
        int start = position;
        long group = 0;
        while (position < end
                && position < start + 4
                && Character.digit(text.charAt(position), 16) >= 0
                && text.charAt(position) < 128) {
            group = group << 4 | Character.digit(text.charAt(position++), 16);
        }
        if (position < end && text.charAt(position) == '.') {
            return readIpv4(start);
        }
        add(group);
        return position > start;
    }

    private boolean readIpv4(int start) {
        long bits = ipv4(text, start, end);
        position = end;
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

    /** Reads the separator of two groups; there is none at the end. */
    private boolean readColon() {
        if (position == end) {
            return true;
        }
        if (text.charAt(position++) != ':') {
            return false;
        }
        return position < end && (text.charAt(position) != ':' || readGap());
    }

    /** Reads a gap: shifts the groups before it to the left end. Returns false for a second gap. */
    private boolean readGap() {
        boolean first = head == null;
        for (int i = groups; i < GROUPS; i++) {
            shift(0);
        }
        head = new IpAddress(high, low);
        high = 0;
        low = 0;
        position++;
        return first;
    }
}
