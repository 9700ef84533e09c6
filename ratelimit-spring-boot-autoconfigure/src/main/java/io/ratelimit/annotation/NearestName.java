package io.ratelimit.annotation;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/** What somebody may have meant who misspelt a name. */
final class NearestName {

    private static final int FARTHEST = 3;

    private NearestName() {}

    /** The name that the fewest letters tell apart, if they are few. */
    static Optional<String> of(String misspelt, Collection<String> names) {
        return names.stream()
                .filter(name -> distance(misspelt, name) <= FARTHEST)
                .min(Comparator.<String>comparingInt(name -> distance(misspelt, name))
                        .thenComparing(Comparator.naturalOrder()));
    }

    /** Levenshtein's: letters to add, to drop or to change. */
    private static int distance(String one, String other) {
        int[] row = new int[other.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= one.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j < row.length; j++) {
                int change = diagonal + (one.charAt(i - 1) == other.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(change, Math.min(row[j - 1], row[j]) + 1);
            }
        }
        return row[other.length()];
    }
}
