package io.ratelimit;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Composes the key of a bucket from parts, so that no two different lists of parts give the same key: not
 * {@code a:b} and {@code c} for {@code a} and {@code b:c}, and nothing that a client can send for what stands in for a
 * missing part. A key of one part is most often the part itself.
 *
 * <p>Keys of any other form begin with a NUL and a letter that says which: r for a part that itself begins with NUL,
 * s for a stand-in, m for several parts, t for a key in a tier, o for one that never shares an overflow bucket, x for
 * none. Stores may add forms of their own.
 */
public final class Keys {

    private static final char MARK = '\0';

    private static final String RAW = MARK + "r";
    private static final String STAND_IN = MARK + "s";
    private static final String SEVERAL = MARK + "m";
    private static final String TIER = MARK + "t";
    private static final String RESERVED = MARK + "o";

    /** In place of a key that is missing and has no stand-in. */
    static final String MISSING = MARK + "x";

    private Keys() {}

    /**
     * A part that a caller sent.
     *
     * @param ignoreCase whether it equals the same text in other case, as {@link String#equalsIgnoreCase} compares
     */
    public static String part(String text, boolean ignoreCase) {
        String folded = ignoreCase ? fold(text) : text;
        return !folded.isEmpty() && folded.charAt(0) == MARK ? RAW + folded : folded;
    }

    /** What stands in for a missing part; never equal to a part that was sent. */
    public static String standIn(String text) {
        return STAND_IN + text;
    }

    /** The key of these parts, each made by {@link #part} or {@link #standIn}. */
    public static String join(String... parts) {
        if (parts.length == 1) {
            return parts[0];
        }
        int length = 2;
        for (String part : parts) {
            length += part.length() + 4;
        }
        StringBuilder key = new StringBuilder(length).append(SEVERAL);
        for (String part : parts) {
            key.append(part.length()).append(':').append(part);
        }
        return key.toString();
    }

    /** The key that a key has in a tier of its policy. */
    static String inTier(String tier, String key) {
        return TIER + tier.length() + ":" + tier + key;
    }

    /** The tier that a key was put in, as text that no two tiers share; empty for none. */
    static String tierOf(String key) {
        if (!key.startsWith(TIER)) {
            return "";
        }
        int colon = key.indexOf(':');
        return key.substring(0, colon + 1 + Integer.parseInt(key, TIER.length(), colon, 10));
    }

    /** The key of a bucket that is always the key's own: for the few that a configuration names. */
    public static String reserved(String key) {
        return RESERVED + key;
    }

    static boolean isReserved(String key) {
        return key.startsWith(RESERVED);
    }

    /** The name of the tier that a key was put in; empty for none. */
    public static String tier(String key) {
        String tier = tierOf(key);
        return tier.substring(tier.indexOf(':') + 1);
    }

    /**
     * The parts that a key was composed of, as {@link #part} and {@link #standIn} made them. Where the end of the key is
     * missing, so is that of its last part.
     */
    public static List<String> parts(String key) {
        String joined =
                key.substring(isReserved(key) ? RESERVED.length() : tierOf(key).length());
        if (!joined.startsWith(SEVERAL)) {
            return List.of(joined);
        }
        List<String> parts = new ArrayList<>();
        int start = SEVERAL.length();
        for (int colon = joined.indexOf(':', start); colon >= 0; colon = joined.indexOf(':', start)) {
            int length = Integer.parseInt(joined, start, colon, 10);
            start = Math.min(colon + 1 + length, joined.length());
            parts.add(joined.substring(colon + 1, start));
        }
        return parts;
    }

    /** Whether a part of a key stands in for one that was missing. */
    public static boolean isStandIn(String part) {
        return part.startsWith(STAND_IN);
    }

    /** The text of a part of a key, as it was sent but for its case, or of what stands in. */
    public static String text(String part) {
        return part.startsWith(STAND_IN) || part.startsWith(RAW) ? part.substring(RAW.length()) : part;
    }

    /** Folds case letter by letter, as {@link String#equalsIgnoreCase} does: no locale, no change of length. */
    private static String fold(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (text.charAt(i) >= 128) {
                return foldLetters(text);
            }
        }
        return text.toLowerCase(Locale.ROOT);
    }

    private static String foldLetters(String text) {
        StringBuilder folded = new StringBuilder(text.length());
        text.codePoints().map(Keys::fold).forEach(folded::appendCodePoint);
        return folded.toString();
    }

    private static int fold(int letter) {
        return Character.toLowerCase(Character.toUpperCase(letter));
    }
}
