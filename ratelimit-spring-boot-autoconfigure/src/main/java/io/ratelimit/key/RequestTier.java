package io.ratelimit.key;

import io.ratelimit.BucketSpec;
import io.ratelimit.Keys;
import io.ratelimit.ThrottlePolicy;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Which tier of a policy a request belongs to: by a role of the user, or as a part of a key would say. Immutable. */
public final class RequestTier {

    private static final String ROLE = "role";
    private static final KeyPart BY_ROLE = new KeyPart(ROLE, request -> null, Known.WITH_USER, false);

    /** Who has the roles of several tiers belongs to the one that gives most. */
    private static final Comparator<Map.Entry<String, BucketSpec>> MOST_FIRST =
            Comparator.<Map.Entry<String, BucketSpec>>comparingDouble(tier -> -perSecond(tier.getValue()))
                    .thenComparing(tier -> -tier.getValue().capacity())
                    .thenComparing(Map.Entry::getKey);

    private final KeyPart part;

    private RequestTier(KeyPart part) {
        this.part = part;
    }

    /**
     * Reads {@code role}, or what is also a part of a key. It is of no use before it is {@linkplain #among of tiers}.
     *
     * @throws IllegalArgumentException if it is neither
     */
    public static RequestTier of(String text) {
        try {
            return new RequestTier(text.equals(ROLE) ? BY_ROLE : KeyPart.of(text));
        } catch (IllegalArgumentException unreadable) {
            if (text.indexOf(':') >= 0) {
                throw unreadable;
            }
            throw new IllegalArgumentException(
                    "'" + text + "' is not what a tier can be told by: say role, or a part of a key, such as"
                            + " header:NAME, bean:NAME or expression:SPEL");
        }
    }

    /** Which of these tiers. */
    public RequestTier among(Map<String, BucketSpec> tiers, Function<String, KeyResolver> beans) {
        return new RequestTier(
                part.name().equals(ROLE)
                        ? new KeyPart(ROLE, byRole(tiers), part.known(), false)
                        : part.withBean(beans));
    }

    private static KeyResolver byRole(Map<String, BucketSpec> tiers) {
        List<Named> named = tiers.entrySet().stream()
                .sorted(MOST_FIRST)
                .map(tier -> new Named(tier.getKey(), roles(tier.getKey())))
                .toList();
        return request -> first(named, request.roles());
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

    /** From when on it can be told. */
    public Known known() {
        return part.known();
    }

    /** Whether clients can choose it. */
    public boolean chosenByClient() {
        return part.chosenByClient();
    }

    /** The name of the tier; null, or a name that the policy doesn't have, for none. */
    @Nullable
    String tier(RequestFacts request, ThrottlePolicy policy, FailureListener failures) {
        try {
            String text = part.resolver().resolve(request);
            return text == null ? null : Keys.part(text, true);
        } catch (Exception failure) {
            failures.failed(policy.name(), "its tier, so its own rate held", failure);
            return null;
        }
    }

    /** As it is written. */
    @Override
    public String toString() {
        return part.name();
    }

    private record Named(String tier, Set<String> roles) {}
}
