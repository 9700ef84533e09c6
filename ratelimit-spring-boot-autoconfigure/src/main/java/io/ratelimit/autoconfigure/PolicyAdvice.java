package io.ratelimit.autoconfigure;

import io.ratelimit.BucketSpec;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestKey;
import io.ratelimit.policy.BackendProperties;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.BackendProperties.Jdbc;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.core.env.Environment;

/**
 * The advice about limits that are probably mistakes: about what is the same for requests and for calls of annotated methods,
 * and about annotated methods. A function for one mistake returns its text, or null.
 */
record PolicyAdvice(ConfiguredPolicies policies, Advice advice) {

    /** The shortest time to full, in leases, for which leases cost at most 5 % of the capacity. */
    private static final int MIN_LEASES_TO_FULL = 20;

    void adviseOnLease(ThrottlePolicy policy) {
        advice.warn(policy.name(), longLease(policy));
    }

    private static @Nullable String longLease(ThrottlePolicy policy) {
        Duration shortest = Stream.concat(Stream.of(policy.spec()), policy.tiers().values().stream())
                .map(BucketSpec::timeToFull)
                .min(Comparator.naturalOrder())
                .orElseThrow();
        Duration free = shortest.dividedBy(MIN_LEASES_TO_FULL);
        return policy.lease().compareTo(free) > 0
                ? "Throttle policy '<policy>' has a 'lease' of " + Rate.format(policy.lease())
                        + ": while leases are out, the tokens that come back within that time are missing from"
                        + " bursts, which is more than 5 % of the capacity. Set a lease of at most "
                        + Rate.format(free) + ", or a larger capacity"
                : null;
    }

    /**
     * Adds advice about properties of Redis or of a database if no limit uses them.
     *
     * @param ownStore whether the application has a bucket store of its own, which the properties of Redis apply to
     */
    void warnOfUnusedBackend(boolean ownStore, Environment environment) {
        for (BackendKind kind : BackendKind.values()) {
            String property = "ratelimit." + kind.text();
            boolean used = policies.uses(kind) || ownStore && kind == BackendKind.REDIS;
            if (kind.place() != null && !used && isSet(property, environment)) {
                advice.warn(
                        null,
                        "Properties below '" + property + "' are set, but no policy has its buckets in " + kind.place()
                                + ". Set 'ratelimit.backend: " + kind.text() + "', or remove these properties");
            }
        }
    }

    private static boolean isSet(String property, Environment environment) {
        ConfigurationPropertyName name = ConfigurationPropertyName.of(property);
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source.containsDescendantOf(name) == ConfigurationPropertyState.PRESENT) {
                return true;
            }
        }
        return false;
    }

    void adviseOnRequests(PolicyThrottler throttler, RequestKey key, boolean settles) {
        ThrottlePolicy policy = throttler.policy();
        adviseOnKey(policy, key);
        adviseOnCapacity(throttler, key, settles && policy.isGlobal() ? "request" : null);
    }

    /** Adds the advice about a policy for annotated methods, or about one that no annotation names. */
    void adviseOnCalls(PolicyThrottler throttler, RateLimitedOperations operations) {
        ThrottlePolicy policy = throttler.policy();
        String name = policy.name();
        Policy configured = policies.properties(name);
        AnnotatedPolicy limit = operations.limit(name);
        if (limit != null) {
            adviseOnCapacity(throttler, limit.key(), operations.settlesOneBucket(name) ? "call" : null);
            if (configured != null) {
                adviseOnConfigured(configured, policy, limit.key(), operations);
            }
        } else if (configured != null && configured.appliesTo() == AppliesTo.ANNOTATED) {
            advice.warn(
                    name,
                    "Throttle policy '<policy>' applies to annotated methods, but no @RateLimited names it, so only code"
                            + " can use it. Put @RateLimited(\"<policy>\") on a method of a bean, or, to limit requests,"
                            + " remove 'applies-to'");
        }
    }

    private void adviseOnConfigured(
            Policy configured, ThrottlePolicy policy, RequestKey key, RateLimitedOperations operations) {
        String name = policy.name();
        if (operations.givesKeys(name)) {
            advice.warn(name, clientChosenTier(key));
        } else {
            adviseOnKey(policy, key);
        }
        if (configured.queueLimit() != null && !operations.mayWait(name)) {
            advice.warn(
                    name,
                    "Throttle policy '<policy>' has a queue-limit but no max-wait, so no call waits. Set the longest"
                            + " wait, for example 'ratelimit.policies.<policy>.max-wait: 2s', or remove the queue-limit");
        }
        if (key.tier() == null && !operations.givesTiers(name)) {
            advice.warn(name, unselectedTiers(policy));
        }
    }

    private static @Nullable String unselectedTiers(ThrottlePolicy policy) {
        if (policy.shares() != null && policy.shares().each() == null) {
            return "Throttle policy '<policy>' has shares, but nothing selects the share of a call: no call has one."
                    + " Set 'ratelimit.policies.<policy>.tier: role', or 'tier' in @RateLimited";
        }
        return policy.tiers().isEmpty()
                ? null
                : "Throttle policy '<policy>' has tiers, but nothing selects the tier of a call: the policy's own limit"
                        + " applies to all calls. Set 'ratelimit.policies.<policy>.tier: role', or 'tier' in"
                        + " @RateLimited, or remove the tiers";
    }

    private void adviseOnKey(ThrottlePolicy policy, RequestKey key) {
        advice.warn(policy.name(), clientChosenKey(policy, key));
        advice.warn(policy.name(), clientChosenShare(key));
        advice.warn(policy.name(), clientChosenTier(key));
        advice.inform(policy.name(), numbers(key));
    }

    /** @param debtor the noun for what one bucket of all is settled by, such as "request"; null if there is no such bucket */
    private void adviseOnCapacity(PolicyThrottler throttler, RequestKey key, @Nullable String debtor) {
        ThrottlePolicy policy = throttler.policy();
        if (policy.mode() != Mode.OFF) {
            Policy configured = policies.properties(policy.name());
            advice.warn(policy.name(), noShareAlone(throttler, key, configured));
            advice.warn(policy.name(), reservedCapacity(policy, configured));
            advice.warn(policy.name(), debtor == null ? null : debtOfAll(configured, debtor));
        }
    }

    private static @Nullable String clientChosenKey(ThrottlePolicy policy, RequestKey key) {
        return areChosenByClient(key.parts())
                ? "Throttle policy '<policy>' is keyed only by what clients choose ("
                        + String.join(" and ", policy.key())
                        + "): a client that changes it gets a new bucket. Add another policy, keyed by 'ip' or 'user'"
                : null;
    }

    /** The endpoint and the method, of which there are few, bind no other part to a client. */
    private static boolean areChosenByClient(List<KeyPart> parts) {
        return parts.stream().anyMatch(KeyPart::chosenByClient)
                && parts.stream()
                        .allMatch(part -> part.chosenByClient()
                                || part.name().equals("endpoint")
                                || part.name().equals("method"));
    }

    private static @Nullable String clientChosenShare(RequestKey key) {
        return areChosenByClient(key.lane())
                ? "Clients choose whose guaranteed share of the throttle policy '<policy>' they use ("
                        + key.lane().stream().map(KeyPart::name).collect(Collectors.joining(" and "))
                        + "): one client can take many shares. Key the shares by 'user' or 'claim:NAME', or check"
                        + " what clients send before"
                : null;
    }

    private static @Nullable String clientChosenTier(RequestKey key) {
        return key.tier() != null && key.tier().chosenByClient()
                ? "Clients choose their tier of the throttle policy '<policy>' (" + key.tier()
                        + "). Set 'tier' to 'role', or to 'bean:NAME' or 'expression:SPEL' that reads what clients"
                        + " can't choose"
                : null;
    }

    /** One costly call may put the bucket of all calls into debt. */
    private static @Nullable String debtOfAll(@Nullable Policy configured, String unit) {
        return configured != null && configured.maxCost() != null
                ? null
                : "Throttle policy '<policy>' has 'settle' without a 'max-cost', and one bucket for all " + unit
                        + "s: after a single " + unit + " that costs much more than its estimate, all others are"
                        + " denied until time has paid the debt. "
                        + (configured == null
                                ? "Give the annotation a key, or put the limit into a policy with a 'max-cost'"
                                : "Set 'ratelimit.policies.<policy>.max-cost', or a 'key'");
    }

    /** If the guaranteed shares reserve the whole bucket, each key has only its own share, and other keys have nothing. */
    private static @Nullable String reservedCapacity(ThrottlePolicy policy, @Nullable Policy configured) {
        long cost = configured == null ? 1 : configured.cost().minTokens();
        long reserve = policy.shares() == null ? 0 : policy.shares().reserve();
        return policy.shares() != null && policy.spec().capacity() - reserve < cost
                ? "The guaranteed shares of the throttle policy '<policy>' reserve " + reserve
                        + " of its capacity of " + policy.spec().capacity()
                        + ": no share can use what others leave, and requests without a share are always rejected. Set"
                        + " 'ratelimit.policies.<policy>.capacity' to at least " + (reserve + cost)
                        + ", or guarantee smaller capacities"
                : null;
    }

    /** The part of a limit that this instance grants while the backend is unavailable may be none. */
    private @Nullable String noShareAlone(PolicyThrottler throttler, RequestKey key, @Nullable Policy configured) {
        ThrottlePolicy policy = throttler.policy();
        long cost = configured == null ? 1 : configured.cost().minTokens();
        BackendProperties backend = policies.sharedBackend();
        if (throttler.backend() == null || policies.failureRule(policy) != FailureRule.LOCAL) {
            return null;
        }
        return Stream.of(
                        Stream.of(policy.spec()),
                        policy.tiers().values().stream(),
                        key.overrides().specs())
                .flatMap(specs -> specs)
                .filter(spec -> FailoverBucketStore.isNone(backend.localShare(), spec, cost))
                .findFirst()
                .map(spec -> "Throttle policy '<policy>' denies all calls of the limit " + spec
                        + " while its backend is unavailable, since the share of this instance is less than "
                        + (cost == 1 ? "one token" : "the cost, " + cost)
                        + ": 'ratelimit." + (backend instanceof Jdbc ? "jdbc" : "redis")
                        + ".local-share' is " + backend.localShare()
                        + ". Set it to 1 divided by the number of instances, but at least " + cost
                        + " divided by the capacity; or accept this by"
                        + " 'ratelimit.policies.<policy>.on-backend-failure: deny'")
                .orElse(null);
    }

    /** Parts of the key are text here, but the controller may convert them to numbers. */
    private static @Nullable String numbers(RequestKey key) {
        List<String> texts = key.parts().stream()
                .map(KeyPart::name)
                .filter(name -> name.startsWith("query:") || name.startsWith("path-variable:"))
                .toList();
        return texts.isEmpty()
                ? null
                : "Throttle policy '<policy>' is keyed by the text of " + String.join(" and ", texts)
                        + ". Where the controller takes a number, 5, 05 and 0x5 are one value but three keys: write "
                        + texts.stream().map(PolicyAdvice::number).collect(Collectors.joining(" and "))
                        + " in the key, or limit the method by @RateLimited(key = \"#argument\")";
    }

    private static String number(String part) {
        int colon = part.indexOf(':');
        String function = part.startsWith("query:") ? "query" : "pathVariable";
        return "\"expression:number(" + function + "('"
                + part.substring(colon + 1).replace("'", "''") + "'))\"";
    }
}
