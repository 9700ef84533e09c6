package io.ratelimit;

import java.nio.charset.StandardCharsets;

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
        return !folded.isEmpty() && folded.charAt(0) == MARK ? MARK + "r" + folded : folded;
    }

    /** What stands in for a missing part; never equal to a part that was sent. */
    public static String standIn(String text) {
        return MARK + "s" + text;
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
        StringBuilder key = new StringBuilder(length).append(MARK).append('m');
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

    /** Folds case letter by letter, as {@link String#equalsIgnoreCase} does: no locale, no change of length. */
    private static String fold(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (Character.isSurrogate(c) || fold(c) != c) {
                return foldAscii(text);
            }
        }
        return text;
    }

    private static String foldAscii(String text) {
        byte[] folded = new byte[text.length()];
        for (int i = 0; i < folded.length; i++) {
            char c = text.charAt(i);
            if (c >= 128) {
                return foldLetters(text);
            }
            folded[i] = (byte) fold(c);
        }
        return new String(folded, StandardCharsets.ISO_8859_1);
    }

    private static String foldLetters(String text) {
        StringBuilder folded = new StringBuilder(text.length());
        text.codePoints().map(Keys::fold).forEach(folded::appendCodePoint);
        return folded.toString();
    }

    private static int fold(int letter) {
        if (letter < 128) {
            return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
        }
        return Character.toLowerCase(Character.toUpperCase(letter));
    }
}
