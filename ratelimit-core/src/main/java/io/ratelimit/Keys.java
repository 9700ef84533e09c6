package io.ratelimit;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Composes the key of a bucket from parts, so that different lists of parts never give the same key: {@code a:b} and
 * {@code c} differ from {@code a} and {@code b:c}, and no text that a client sends equals the placeholder of a missing
 * part. A key of one part is usually the part itself.
 *
 * <p>Every other key begins with a NUL and a letter for its form: r for a part that itself begins with NUL, s for a
 * placeholder, m for several parts, t for a key in a tier, o for a reserved key, x for no key. Stores may add forms.
 */
public final class Keys {

    private static final char MARK = '\0';

    private static final String RAW = MARK + "r";
    private static final String PLACEHOLDER = MARK + "s";
    private static final String SEVERAL = MARK + "m";
    private static final String TIER = MARK + "t";
    private static final String RESERVED = MARK + "o";

    /** The key of a call that lacks a part without a placeholder. */
    static final String MISSING = MARK + "x";

    private Keys() {}

    /**
     * Returns a hash of a key that no client can predict. Equal keys have equal hashes until the process ends. Two keys
     * among a million have the same hash by chance in one of 37 million processes.
     */
    public static long hash(String key) {
        return SipHash.PROCESS.hash64(key);
    }

    /**
     * Returns the part of a key for a text that a caller sent.
     *
     * @param ignoreCase whether texts that differ only in case give the same part, as {@link String#equalsIgnoreCase}
     *     compares
     */
    public static String part(String text, boolean ignoreCase) {
        String folded = ignoreCase ? fold(text) : text;
        return !folded.isEmpty() && folded.charAt(0) == MARK ? RAW + folded : folded;
    }

    /** Returns the placeholder of a missing part; it never equals a part that a caller sent. */
    public static String placeholder(String text) {
        return PLACEHOLDER + text;
    }

    /** Returns the key of these parts, each made by {@link #part} or {@link #placeholder}. */
    public static String join(String... parts) {
        if (parts.length == 1) {
            return parts[0];
        }
        if (parts.length == 2) { // as one expression, which the JVM composes in place
            return SEVERAL + parts[0].length() + ':' + parts[0] + parts[1].length() + ':' + parts[1];
        }
        StringBuilder key = new StringBuilder(SEVERAL);
        for (String part : parts) {
            key.append(part.length()).append(':').append(part);
        }
        return key.toString();
    }

    /** @throws IllegalArgumentException if there are not as many texts as names, or one is blank */
    static String of(ThrottlePolicy policy, List<String> names, String... texts) {
        if (texts.length != names.size()) {
            throw new IllegalArgumentException("the key of '" + policy.name() + "' must be of " + names.size() + " ("
                    + String.join(", ", names) + "), but was of " + texts.length);
        }
        String[] parts = new String[texts.length];
        for (int i = 0; i < parts.length; i++) {
            if (texts[i].isBlank()) {
                throw new IllegalArgumentException(
                        "the " + names.get(i) + " in the key of '" + policy.name() + "' must be more than blanks");
            }
            parts[i] = part(texts[i], policy.ignoreCase());
        }
        return join(parts);
    }

    static String inTier(String tier, String key) {
        return TIER + tier.length() + ":" + tier + key;
    }

    /**
     * Returns the beginning of a key up to the name of its tier, different for each tier; empty if it is in no tier.
     */
    static String tierPrefix(String key) {
        if (!key.startsWith(TIER)) {
            return "";
        }
        int colon = key.indexOf(':');
        return key.substring(0, colon + 1 + Integer.parseInt(key, TIER.length(), colon, 10));
    }

    /** Returns a key that never shares an overflow bucket. For the few keys that a configuration names. */
    public static String reserved(String key) {
        return RESERVED + key;
    }

    static boolean isReserved(String key) {
        return key.startsWith(RESERVED);
    }

    /**
     * Returns the name of the tier that a key is in; empty if it is in no tier.
     *
     * @param key a key that this class composed; other texts may throw
     */
    public static String tier(String key) {
        String tier = tierPrefix(key);
        return tier.substring(tier.indexOf(':') + 1);
    }

    /**
     * Returns the parts of a key, as {@link #part} and {@link #placeholder} made them. If the end of the key is cut
     * off, so is the end of its last part.
     *
     * @param key a key that this class composed, perhaps cut off within its last part; other texts may throw
     */
    public static List<String> parts(String key) {
        String joined = key.substring(
                isReserved(key) ? RESERVED.length() : tierPrefix(key).length());
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

    /** Returns whether a part of a key is the placeholder of a missing part. */
    public static boolean isPlaceholder(String part) {
        return part.startsWith(PLACEHOLDER);
    }

    /** Returns the text of a part or of a placeholder, perhaps in another case than it was sent. */
    public static String text(String part) {
        return part.startsWith(PLACEHOLDER) || part.startsWith(RAW) ? part.substring(RAW.length()) : part;
    }

    /** Folds case letter by letter, as {@link String#equalsIgnoreCase} does: without a locale or a change of length. */
    private static String fold(String text) {
        boolean same = true;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c >= 128) {
                return foldLetters(text);
            }
            same &= c < 'A' || c > 'Z';
        }
        return same ? text : text.toLowerCase(Locale.ROOT);
    }

    private static String foldLetters(String text) {
        StringBuilder folded = new StringBuilder(text.length());
        for (int i = 0; i < text.length(); ) {
            int letter = text.codePointAt(i);
            folded.appendCodePoint(fold(letter));
            i += Character.charCount(letter);
        }
        return folded.toString();
    }

    private static int fold(int letter) {
        return Character.toLowerCase(Character.toUpperCase(letter));
    }
}
