package io.ratelimit.key;

import java.util.Arrays;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * A client's address as the key of a bucket. Reads the literal forms of RFC 4291 and dotted IPv4; never resolves a
 * name. What is no address is one key for all: the text may come from a header, and each text would be a new bucket.
 */
public final class ClientIp {

    /** The key of all that have no address. */
    public static final String NONE = "none";

    private static final int GROUPS = 8;

    /** Of an IPv6 address with an IPv4 tail, and room for a zone. */
    private static final int LONGEST = 64;

    private ClientIp() {}

    /**
     * The one form of an address: dotted for IPv4, also where it came mapped into IPv6; the first {@code ipv6Prefix}
     * bits of IPv6, since a client has all addresses of such a network; {@link #NONE} for what is no address.
     */
    public static String canonical(@Nullable String address, int ipv6Prefix) {
        if (address == null || address.length() > LONGEST) {
            return NONE;
        }
        if (address.indexOf(':') < 0) {
            return ipv4(address) >= 0 ? address : NONE;
        }
        int[] groups = groups(withoutZone(withoutBrackets(address)));
        if (groups == null) {
            return NONE;
        }
        return isMapped(groups) ? dotted(groups[6], groups[7]) : masked(groups, ipv6Prefix);
    }

    /** Spring puts an IPv6 address that it took from a header into brackets. */
    private static String withoutBrackets(String address) {
        return address.startsWith("[") && address.endsWith("]") ? address.substring(1, address.length() - 1) : address;
    }

    private static String withoutZone(String address) {
        int percent = address.indexOf('%');
        return percent < 0 ? address : address.substring(0, percent);
    }

    /** Dotted IPv4 as its 32 bits, or -1. A number has no leading zero: some read octal. */
    private static long ipv4(String text) {
        long bits = 0;
        int dots = 0;
        int number = -1;
        for (int i = 0; i < text.length(); i++) {
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

    /** The eight groups of an IPv6 address, or null. */
    private static int @Nullable [] groups(String text) {
        int gap = text.indexOf("::");
        if (gap < 0) {
            int[] groups = groups(text, true);
            return groups != null && groups.length == GROUPS ? groups : null;
        }
        int[] before = groups(text.substring(0, gap), false);
        int[] after = groups(text.substring(gap + 2), true);
        if (before == null || after == null || before.length + after.length >= GROUPS) {
            return null;
        }
        int[] groups = Arrays.copyOf(before, GROUPS);
        System.arraycopy(after, 0, groups, GROUPS - after.length, after.length);
        return groups;
    }

    /** Groups without a gap: none of an empty text; null if they can't be read. The last two may be dotted IPv4. */
    private static int @Nullable [] groups(String text, boolean mayEndDotted) {
        if (text.isEmpty()) {
            return new int[0];
        }
        String[] parts = text.split(":", -1);
        String last = parts[parts.length - 1];
        long dotted = mayEndDotted ? ipv4(last) : -1;
        int hex = dotted < 0 ? parts.length : parts.length - 1;
        int[] groups = new int[dotted < 0 ? hex : hex + 2];
        for (int i = 0; i < hex; i++) {
            if (!isGroup(parts[i])) {
                return null;
            }
            groups[i] = HexFormat.fromHexDigits(parts[i]);
        }
        if (dotted >= 0) {
            groups[hex] = (int) (dotted >>> 16);
            groups[hex + 1] = (int) (dotted & 0xffff);
        }
        return groups;
    }

    private static boolean isGroup(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (!HexFormat.isHexDigit(text.charAt(i))) {
                return false;
            }
        }
        return !text.isEmpty() && text.length() <= 4;
    }

    private static boolean isMapped(int[] groups) {
        return (groups[0] | groups[1] | groups[2] | groups[3] | groups[4]) == 0 && groups[5] == 0xffff;
    }

    private static String dotted(int high, int low) {
        return (high >>> 8) + "." + (high & 0xff) + "." + (low >>> 8) + "." + (low & 0xff);
    }

    private static String masked(int[] groups, int prefix) {
        int shown = (prefix + 15) / 16;
        StringBuilder text = new StringBuilder(48);
        for (int i = 0; i < shown; i++) {
            int bits = Math.min(16, prefix - i * 16);
            int group = groups[i] & (0xffff << (16 - bits)) & 0xffff;
            text.append(i == 0 ? "" : ":").append(Integer.toHexString(group));
        }
        return text.append(shown < GROUPS ? "::/" : "/").append(prefix).toString();
    }
}
