package io.ratelimit.annotation;

import io.ratelimit.BucketSpec;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.FailureListener;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.key.RequestKey.MissingKey;
import io.ratelimit.policy.RateLimitConfigurationException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The limits of annotations: policies of the configuration by name, and the inline limits that annotations define. The
 * throttlers have each inline limit under its own name. Thread-safe.
 */
final class AnnotatedLimits {

    private static final int MAX_NAME_LENGTH = 64;

    private final List<AnnotatedPolicy> policies;
    private final ThrottlePolicy.Mode mode;
    private final Throttlers throttlers;
    private final FailureListener failures;
    private final List<InlineLimit> inlineLimits = new ArrayList<>();

    AnnotatedLimits(
            List<AnnotatedPolicy> policies, ThrottlePolicy.Mode mode, Throttlers throttlers, FailureListener failures) {
        this.policies = List.copyOf(policies);
        this.mode = mode;
        this.throttlers = throttlers;
        this.failures = failures;
    }

    /** Returns whether a limit is defined by an annotation, not by the configuration. */
    boolean isInline(String name) {
        return find(name) == null;
    }

    private @Nullable AnnotatedPolicy find(String name) {
        return policies.stream()
                .filter(policy -> policy.policy().name().equals(name))
                .findFirst()
                .orElse(null);
    }

    /** @throws RateLimitConfigurationException if annotations can't use a policy of that name */
    AnnotatedPolicy policy(String name, SourceLocation location) {
        AnnotatedPolicy policy = find(name);
        if (policy == null) {
            throw unknown(name, location);
        }
        return policy;
    }

    private RateLimitConfigurationException unknown(String name, SourceLocation location) {
        if (name.indexOf('/') >= 0) {
            return location.invalid(
                    "names the throttle policy '" + name + "', which looks like a rate",
                    "If it is a rate, write '@RateLimited(rate = \"" + name + "\")'.");
        }
        InlineLimit inline = inlineLimit(name);
        if (inline != null) {
            return location.invalid(
                    "names '" + name + "', which isn't a policy of the configuration, but the inline limit of another"
                            + " @RateLimited",
                    "To share the limit, write '" + annotation(inline.policy) + "' in both places, or move it to"
                            + " 'ratelimit.policies." + name + "' with 'applies-to: annotated'.");
        }
        return hasThrottler(name)
                ? location.invalid(
                        "names the throttle policy '" + name + "', which limits requests: a call within a request would"
                                + " be charged twice",
                        "Set 'ratelimit.policies." + name
                                + ".applies-to: annotated' if the policy is only for annotated"
                                + " methods, or name another policy.")
                : undefined(name, location);
    }

    private boolean hasThrottler(String name) {
        return throttlers.all().stream()
                .anyMatch(throttler -> throttler.policy().name().equals(name));
    }

    private static String annotation(ThrottlePolicy inline) {
        BucketSpec spec = inline.spec();
        boolean hasCapacity = spec.hasRate() && spec.capacity() != spec.rate().tokens();
        return "@RateLimited(name = \"" + inline.name() + "\""
                + (spec.hasRate() ? ", rate = \"" + spec.rate() + "\"" : "")
                + (hasCapacity ? ", capacity = \"" + spec.capacity() + "\"" : "")
                + (spec.inFlight() > 0 ? ", inFlight = \"" + spec.inFlight() + "\"" : "")
                + (inline.isGlobal() ? "" : ", key = …")
                + ")";
    }

    private RateLimitConfigurationException undefined(String name, SourceLocation location) {
        List<String> names =
                policies.stream().map(policy -> policy.policy().name()).toList();
        return location.invalid(
                "names the throttle policy '" + name + "', which doesn't exist. "
                        + (names.isEmpty()
                                ? "No policy is for annotated methods"
                                : names.stream()
                                        .sorted()
                                        .collect(Collectors.joining(
                                                ", ", "The policies for annotated methods are: ", ""))),
                "Define 'ratelimit.policies." + name + "' with 'applies-to: annotated', or correct the name"
                        + RateLimitConfigurationException.nearest(name, names)
                                .map(nearest -> ": did you mean '" + nearest + "'?")
                                .orElse("."));
    }

    /**
     * Checks that one of an annotation's policies has the one tier of its calls. The others apply with their own rates.
     *
     * @param tier empty or null if the calls have none, or may be in any
     */
    static void checkTier(@Nullable String tier, List<AnnotatedPolicy> limits, SourceLocation location) {
        if (tier == null || tier.isEmpty()) {
            return;
        }
        Set<String> tiers = new TreeSet<>();
        for (AnnotatedPolicy limit : limits) {
            Shares shares = limit.policy().shares();
            tiers.addAll(shares == null ? limit.policy().tiers().keySet() : shares.names());
        }
        if (!tiers.contains(tier)) {
            String names = limits.stream().map(limit -> limit.policy().name()).collect(Collectors.joining("', '"));
            throw location.invalid(
                    "has the tier '" + tier + "', but those of the throttle policy '" + names + "' are: "
                            + String.join(", ", tiers),
                    "Add the tier, or correct its name"
                            + RateLimitConfigurationException.nearest(tier, tiers)
                                    .map(nearest -> ": did you mean '" + nearest + "'?")
                                    .orElse("."));
        }
    }

    /**
     * Returns an inline limit, which the first call for its name registers with the throttlers.
     *
     * @param owner the method or bean that the name is made from; empty for a written name, which annotations may share
     * @throws IllegalArgumentException if the name is not valid, or another limit has it
     * @throws UnsupportedOperationException if the limit is of calls in flight, which its backend does not count
     */
    AnnotatedPolicy inline(String name, String owner, BucketSpec spec, List<String> key) {
        PolicyThrottler throttler =
                throttler(owner, ThrottlePolicy.of(name, spec, key).withMode(mode));
        return new AnnotatedPolicy(
                throttler,
                new RequestKey(List.of(), MissingKey.CLIENT_IP, failures, throttlers.listener()),
                RequestCost.ONE);
    }

    private void add(ThrottlePolicy policy) {
        try {
            throttlers.add(policy);
        } catch (IllegalArgumentException unkept) {
            throw new UnsupportedOperationException(unkept.getMessage(), unkept);
        }
    }

    private synchronized PolicyThrottler throttler(String owner, ThrottlePolicy policy) {
        String name = policy.name();
        InlineLimit existing = inlineLimit(name);
        if (existing == null) {
            if (hasThrottler(name)) {
                throw new IllegalArgumentException(
                        "'" + name + "' is already the name of a policy of the configuration");
            }
            add(policy);
            inlineLimits.add(new InlineLimit(owner, policy));
        } else if (!existing.owner.equals(owner) || !existing.policy.equals(policy)) {
            throw new IllegalArgumentException("'" + name + "' is already the name of another limit: "
                    + (existing.owner.isEmpty() || existing.owner.equals(owner)
                            ? describe(existing.policy)
                            : existing.owner));
        }
        return throttlers.get(name);
    }

    private synchronized @Nullable InlineLimit inlineLimit(String name) {
        return inlineLimits.stream()
                .filter(limit -> limit.policy.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    private static String describe(ThrottlePolicy policy) {
        return policy.spec() + (policy.isGlobal() ? "" : ", by " + String.join(" and ", policy.key()));
    }

    /**
     * @param rate empty for a limit of the calls in flight alone
     * @param capacity empty for the tokens of the rate
     * @param inFlight empty for any number of calls in flight
     * @throws IllegalArgumentException if one of them can't be read
     */
    static BucketSpec spec(String rate, String capacity, String inFlight) {
        if (rate.isEmpty()) {
            return BucketSpec.inFlight(calls(inFlight));
        }
        BucketSpec spec = BucketSpec.of(Rate.of(rate));
        BucketSpec sized = capacity.isEmpty() ? spec : spec.withCapacity(whole("capacity", capacity));
        return inFlight.isEmpty() ? sized : sized.withInFlight(calls(inFlight));
    }

    private static int calls(String inFlight) {
        return (int) Math.max(0, Math.min(Integer.MAX_VALUE, whole("inFlight", inFlight)));
    }

    private static long whole(String attribute, String text) {
        try {
            if (text.chars().allMatch(c -> c < 128)) { // parseLong accepts the digits of every script
                return Long.parseLong(text);
            }
        } catch (NumberFormatException tooLargeOrNoNumber) {
            // the message is the same
        }
        throw new IllegalArgumentException(attribute + " must be a whole number, but was '" + text + "'");
    }

    /** Returns a valid name for the names of a bean and a method: {@code order-service-place} for orderService and place. */
    static String nameOf(String... names) {
        String name = String.join("-", names)
                .replaceAll("([a-z0-9])([A-Z])", "$1-$2")
                .replaceAll("([A-Z])([A-Z][a-z])", "$1-$2")
                .toLowerCase(Locale.ROOT)
                .replaceAll("[^a-z0-9]+", "-")
                .replaceAll("^-|-$", "");
        return name.substring(0, Math.min(name.length(), MAX_NAME_LENGTH));
    }

    /** @param policy the policy as it is written, without later changes of its limits */
    private record InlineLimit(String owner, ThrottlePolicy policy) {}
}
