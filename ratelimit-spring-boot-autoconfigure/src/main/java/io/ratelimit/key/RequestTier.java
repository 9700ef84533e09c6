package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import io.ratelimit.Keys;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.key.KeyPart.Availability;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The selection of a policy's tier for a request: by the user's roles, or by the text of a key part. Thread-safe. */
public final class RequestTier {

    private static final String ROLE = "role";
    private static final KeyPart BY_ROLE = new KeyPart(ROLE, request -> null, Availability.NEEDS_USER, false);

    private final KeyPart part;
    private final @Nullable RoleTiers roles;

    private RequestTier(KeyPart part) {
        this.part = part;
        this.roles = part == BY_ROLE ? new RoleTiers() : null;
    }

    /**
     * Parses {@code role}, or a part of a key. A part that names a bean fails until it {@linkplain #withBeans has it}.
     *
     * @throws IllegalArgumentException if the text is neither
     */
    public static RequestTier of(String text) {
        try {
            return new RequestTier(text.equals(ROLE) ? BY_ROLE : KeyPart.of(text));
        } catch (IllegalArgumentException unreadable) {
            if (text.indexOf(':') >= 0) {
                throw unreadable;
            }
            throw new IllegalArgumentException(
                    "'" + text + "' can't select a tier: write role, or a part of a key, such as"
                            + " header:NAME, bean:NAME or expression:SPEL");
        }
    }

    /** Returns this selection with its bean; itself if it names none. */
    public RequestTier withBeans(Function<String, KeyResolver> beans) {
        return roles == null ? new RequestTier(part.withBeans(beans)) : this;
    }

    public Availability availability() {
        return part.availability();
    }

    public boolean chosenByClient() {
        return part.chosenByClient();
    }

    /** Returns the name of the tier; null, or a name that the policy doesn't have, for none. */
    @Nullable
    String tier(RequestFacts request, ThrottlePolicy policy, FailureListener failures) {
        try {
            String text = roles == null ? part.resolver().resolve(request) : roles.find(request.roles(), policy);
            return text == null || roles != null ? text : name(text);
        } catch (Exception | LinkageError | AssertionError | StackOverflowError failure) {
            failures.failed(policy.name(), "its tier, so the policy's own rate applied", failure);
            return null;
        }
    }

    /** Returns the name of a tier for a text in any case, with dashes or underscores, such as that of an enum constant. */
    public static String name(String text) {
        return Keys.part(text, true).replace('_', '-');
    }

    @Override
    public String toString() {
        return part.name();
    }

    /** The tiers of a policy by the roles that have the same names. Thread-safe; recomputed when the tiers change. */
    private static final class RoleTiers {

        /** A user with the roles of several tiers belongs to the tier with the highest rate. */
        private static final Comparator<Map.Entry<String, BucketSpec>> HIGHEST_FIRST =
                Comparator.<Map.Entry<String, BucketSpec>>comparingDouble(tier -> -perSecond(tier.getValue()))
                        .thenComparing(tier -> -tier.getValue().capacity())
                        .thenComparing(tier -> -inFlight(tier.getValue()))
                        .thenComparing(Map.Entry::getKey);

        /** Null before the first request: all empty maps are one object, so one of them here would count as ranked. */
        private volatile @Nullable Ranking ranking;

        /** Returns the name of the tier of a user with these roles; null for none. */
        @Nullable
        String find(Collection<String> roles, ThrottlePolicy policy) {
            Ranking current = ranking;
            Shares shares = policy.shares();
            Map<String, BucketSpec> tiers = shares == null ? policy.tiers() : shares.guaranteed();
            if (current == null || current.tiers != tiers) {
                current = rank(tiers, shares == null ? Map.of() : shares.leave());
                ranking = current;
            }
            return first(current.ranks, roles);
        }

        /** @param leave what calls of other tiers leave, of which the least comes first */
        private static Ranking rank(Map<String, BucketSpec> tiers, Map<String, Integer> leave) {
            Stream<String> highest =
                    tiers.entrySet().stream().sorted(HIGHEST_FIRST).map(Map.Entry::getKey);
            Stream<String> least = leave.entrySet().stream()
                    .sorted(Map.Entry.<String, Integer>comparingByValue().thenComparing(Map.Entry.comparingByKey()))
                    .map(Map.Entry::getKey);
            Map<String, Integer> ranks = new HashMap<>();
            Stream.concat(highest, least).forEach(tier -> ranks.put(tier, ranks.size()));
            return new Ranking(tiers, ranks);
        }

        private static int inFlight(BucketSpec spec) {
            return spec.inFlight() == 0 ? Integer.MAX_VALUE : spec.inFlight();
        }

        private static double perSecond(BucketSpec spec) {
            return spec.rate().tokens() / (double) spec.rate().period().toNanos();
        }

        private static @Nullable String first(Map<String, Integer> ranks, Collection<String> roles) {
            String first = null;
            int lowest = Integer.MAX_VALUE;
            for (String role : roles) {
                String tier = name(role);
                Integer rank = ranks.get(tier);
                if (rank != null && rank < lowest) {
                    first = tier;
                    lowest = rank;
                }
            }
            return first;
        }

        private record Ranking(Map<String, BucketSpec> tiers, Map<String, Integer> ranks) {}
    }
}
