package io.ratelimit.policy;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The name that was probably meant: one that another library or a habit has for it, or the one that differs least. */
final class NearestName {

    private static final Map<String, String> SYNONYMS = Map.ofEntries(
            Map.entry("allowlist", "overrides"),
            Map.entry("bandwidth", "rate"),
            Map.entry("bucket-size", "capacity"),
            Map.entry("burst", "capacity"),
            Map.entry("burst-capacity", "capacity"),
            Map.entry("concurrency", "in-flight"),
            Map.entry("dry-run", "mode"),
            Map.entry("enable", "enabled"),
            Map.entry("http-response-code", "status"),
            Map.entry("http-status-code", "status"),
            Map.entry("limit-for-period", "rate"),
            Map.entry("limit-refresh-period", "rate"),
            Map.entry("limits", "policies"),
            Map.entry("max-concurrent-calls", "in-flight"),
            Map.entry("period", "rate"),
            Map.entry("prefix", "key-prefix"),
            Map.entry("replenish-rate", "rate"),
            Map.entry("requested-tokens", "cost"),
            Map.entry("requests-per-second", "rate"),
            Map.entry("secret", "key-secret"),
            Map.entry("shadow", "mode"),
            Map.entry("status-code", "status"),
            Map.entry("storage", "backend"),
            Map.entry("store", "backend"),
            Map.entry("timeout-duration", "max-wait"),
            Map.entry("uri", "paths"),
            Map.entry("url", "paths"),
            Map.entry("url-patterns", "paths"),
            Map.entry("whitelist", "overrides"),
            Map.entry("window", "rate"));

    private NearestName() {}

    /** Returns the name that was probably meant; null if none is near. */
    static @Nullable String of(String written, Collection<String> names) {
        String text = written.toLowerCase(Locale.ROOT).replace('_', '-');
        String synonym = SYNONYMS.get(text);
        if (synonym != null && names.contains(synonym)) {
            return synonym;
        }
        String nearest = names.stream()
                .min(Comparator.comparingInt(name -> distance(text, name)))
                .orElse(text);
        return distance(text, nearest) <= Math.max(1, (text.length() + 1) / 3) ? nearest : null;
    }

    /** Returns the name that differs least, by at most so many mistakes. A mistake in each letter makes another name. */
    static Optional<String> of(String written, Collection<String> names, int mistakes) {
        return names.stream()
                .filter(name -> distance(written, name) <= Math.min(mistakes, name.length() - 1))
                .min(Comparator.<String>comparingInt(name -> distance(written, name))
                        .thenComparing(Comparator.naturalOrder()));
    }

    /** Returns the number of letters to insert, remove, replace or exchange with their neighbour. */
    private static int distance(String one, String other) {
        int[][] distances = new int[one.length() + 1][other.length() + 1];
        for (int i = 0; i <= one.length(); i++) {
            for (int j = 0; j <= other.length(); j++) {
                distances[i][j] = i == 0 || j == 0 ? i + j : least(one, other, i, j, distances);
            }
        }
        return distances[one.length()][other.length()];
    }

    private static int least(String one, String other, int i, int j, int[][] distances) {
        int replaced = distances[i - 1][j - 1] + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
        int least = Math.min(replaced, 1 + Math.min(distances[i - 1][j], distances[i][j - 1]));
        boolean exchanged =
                i > 1 && j > 1 && one.charAt(i - 1) == other.charAt(j - 2) && one.charAt(i - 2) == other.charAt(j - 1);
        return exchanged ? Math.min(least, 1 + distances[i - 2][j - 2]) : least;
    }
}
