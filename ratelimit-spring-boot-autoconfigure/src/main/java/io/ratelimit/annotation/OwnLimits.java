package io.ratelimit.annotation;

import io.ratelimit.BucketSpec;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The limits that annotations bring themselves, each known to the throttlers under a name of its own. */
final class OwnLimits {

    private static final int LONGEST_NAME = 64;

    private final Throttlers throttlers;
    private final ThrottlePolicy.Mode mode;
    private final Map<String, Owner> owners = new HashMap<>();

    /**
     * @param mode of all of them
     */
    OwnLimits(Throttlers throttlers, ThrottlePolicy.Mode mode) {
        this.throttlers = throttlers;
        this.mode = mode;
    }

    /**
     * The throttler of a place, made when it is first asked for.
     *
     * @param owner the place; empty where the name is written out, for such places share the limit
     * @throws IllegalArgumentException if the name belongs to another limit or is none; the message is a sentence
     */
    synchronized Throttler throttler(String name, String owner, BucketSpec spec, List<String> key) {
        ThrottlePolicy policy = ThrottlePolicy.of(name, spec, key).withMode(mode);
        Owner known = owners.get(name);
        if (known == null) {
            if (throttlers.all().stream()
                    .anyMatch(other -> other.policy().name().equals(name))) {
                throw new IllegalArgumentException(
                        "'" + name + "' is the name of a policy of the configuration already");
            }
            throttlers.add(policy);
            owners.put(name, new Owner(owner, policy));
        } else if (!known.place.equals(owner) || !known.policy.equals(policy)) {
            throw new IllegalArgumentException("'" + name + "' is the name of another limit already: "
                    + (known.place.isEmpty() || known.place.equals(owner) ? describe(known.policy) : known.place));
        }
        return throttlers.get(name);
    }

    /** What has the name so far, if anything. */
    synchronized @Nullable ThrottlePolicy find(String name) {
        Owner owner = owners.get(name);
        return owner == null ? null : owner.policy;
    }

    private static String describe(ThrottlePolicy policy) {
        return policy.spec() + (policy.isGlobal() ? "" : ", by " + String.join(" and ", policy.key()));
    }

    static BucketSpec spec(String rate, String capacity) {
        BucketSpec spec = BucketSpec.of(Rate.of(rate));
        return capacity.isEmpty() ? spec : spec.withCapacity(number(capacity));
    }

    private static long number(String capacity) {
        try {
            return Long.parseLong(capacity);
        } catch (NumberFormatException none) {
            throw new IllegalArgumentException("capacity must be a whole number, but was '" + capacity + "'", none);
        }
    }

    /** A legal name from those of beans and methods: {@code orderService} and {@code place} give order-service-place. */
    static String nameOf(String... names) {
        String legal = String.join("-", names)
                .replaceAll("([a-z0-9])([A-Z])", "$1-$2")
                .replaceAll("([A-Z])([A-Z][a-z])", "$1-$2")
                .toLowerCase(Locale.ROOT)
                .replaceAll("[^a-z0-9]+", "-")
                .replaceAll("^-|-$", "");
        return legal.substring(0, Math.min(legal.length(), LONGEST_NAME));
    }

    /**
     * Who has a name.
     *
     * @param policy as it is written, whatever it was changed to since
     */
    private record Owner(String place, ThrottlePolicy policy) {}
}
