package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The tiers of a policy by the roles that are named like them. Thread-safe; read anew when the tiers are changed. */
final class RoleTiers {

    /** Who has the roles of several tiers belongs to the one that gives most. */
    private static final Comparator<Map.Entry<String, BucketSpec>> MOST_FIRST =
            Comparator.<Map.Entry<String, BucketSpec>>comparingDouble(tier -> -perSecond(tier.getValue()))
                    .thenComparing(tier -> -tier.getValue().capacity())
                    .thenComparing(Map.Entry::getKey);

    private volatile Ranking ranking = new Ranking(Map.of(), List.of());

    /** The tier of whoever has these roles, by its name; null for none. */
    @Nullable
    String of(Collection<String> roles, Map<String, BucketSpec> tiers) {
        Ranking known = ranking;
        if (known.tiers != tiers) {
            known = rank(tiers);
            ranking = known;
        }
        return first(known.named, roles);
    }

    private static Ranking rank(Map<String, BucketSpec> tiers) {
        return new Ranking(
                tiers,
                tiers.entrySet().stream()
                        .sorted(MOST_FIRST)
                        .map(tier -> new Named(tier.getKey(), roles(tier.getKey())))
                        .toList());
    }

    private static double perSecond(BucketSpec spec) {
        return spec.rate().tokens() / (double) spec.rate().period().toNanos();
    }

    /** The roles that are named like a tier: in either case, with dashes or underscores. */
    private static Set<String> roles(String tier) {
        return Stream.of(tier, tier.replace('-', '_'))
                .flatMap(name -> Stream.of(name, name.toUpperCase(Locale.ROOT)))
                .collect(Collectors.toUnmodifiableSet());
    }

    private static @Nullable String first(List<Named> tiers, Collection<String> roles) {
        for (int i = 0; i < tiers.size(); i++) {
            for (String role : tiers.get(i).roles()) {
                if (roles.contains(role)) {
                    return tiers.get(i).tier();
                }
            }
        }
        return null;
    }

    /** The tiers in their order, the one that gives most first. */
    private record Ranking(Map<String, BucketSpec> tiers, List<Named> named) {}

    private record Named(String tier, Set<String> roles) {}
}
