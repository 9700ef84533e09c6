package io.ratelimit.autoconfigure;

import io.ratelimit.Backend;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RejectionDelay;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;

/**
 * The lines of the start-up log about policies: those that are the same for requests and for calls of annotated methods,
 * and those about annotated methods.
 *
 * @param properties the configuration, which may not contain the policy
 * @param policies the policies of the configuration
 * @param throttlers the throttlers of all policies, with those of limits in annotations
 * @param log the log of the report
 */
record PolicyReport(RateLimitProperties properties, ConfiguredPolicies policies, Throttlers throttlers, Log log) {

    private static final int TOO_MANY_REQUESTS = 429;
    private static final String IN_MEMORY = "in memory";

    /**
     * Returns a description of a policy: all except the requests or calls that it limits.
     *
     * @param unit the noun for what the policy limits, such as "request"
     */
    String describe(ThrottlePolicy policy, RequestKey key, RequestCost cost, String unit) {
        Policy configured = properties.policies().get(policy.name());
        int status = configured == null ? TOO_MANY_REQUESTS : configured.status();
        RejectionDelay delay = configured == null ? RejectionDelay.NONE : configured.rejectionDelay();
        return "Throttle policy '" + policy.name() + "' " + mode(policy) + ": " + policy.spec()
                + buckets(policy, key, unit) + tokens(cost, unit) + tiers(policy, key)
                + (key.limit() == null ? "" : ", a " + unit + "'s own limit by " + key.limit())
                + (key.overrides().isEmpty() ? "" : ", " + key.overrides().size() + " of them overridden")
                + (status == TOO_MANY_REQUESTS ? "" : ", status " + status)
                + (delay.isNone() ? "" : ", rejections delayed by " + delay)
                + (mayWait(policy) ? ", " + policy.describeWaiting() : "")
                + ", " + location(policy);
    }

    private static String mode(ThrottlePolicy policy) {
        return switch (policy.mode()) {
            case ENFORCE -> "is enforced";
            case SHADOW -> "is in shadow mode (rejects nothing" + (mayWait(policy) ? ", queues nothing)" : ")");
            case OFF -> "is off";
        };
    }

    private static boolean mayWait(ThrottlePolicy policy) {
        return !policy.maxWait().isZero();
    }

    private static String buckets(ThrottlePolicy policy, RequestKey key, String unit) {
        return policy.isGlobal()
                ? ", one bucket"
                : ", a bucket for each " + String.join(" and ", policy.key())
                        + switch (key.onMissing()) {
                            case SKIP -> " (skips a " + unit + " that lacks one)";
                            case DENY -> " (denies a " + unit + " that lacks one)";
                            case CLIENT_IP, SHARED -> "";
                        };
    }

    private static String tokens(RequestCost cost, String unit) {
        return cost.constant() == null
                ? ", " + cost.describe()
                : cost.minTokens() == 1 ? "" : ", " + cost.minTokens() + " tokens a " + unit;
    }

    private static String tiers(ThrottlePolicy policy, RequestKey key) {
        return key.tier() == null
                ? ""
                : new TreeMap<>(policy.tiers())
                                .entrySet().stream()
                                        .map(tier -> tier.getKey() + ": " + tier.getValue())
                                        .collect(Collectors.joining("; ", ", in tiers (", ")"))
                        + " by " + key.tier();
    }

    /** Returns where the policy's buckets are, and what decides while that place is unavailable. */
    private String location(ThrottlePolicy policy) {
        PolicyThrottler throttler = throttlers.get(policy.name());
        Backend backend = throttler.backend();
        if (backend == null) {
            return IN_MEMORY;
        }
        return ConfiguredPolicies.backendOf(throttler).equals("custom")
                ? "in the application's own " + backend.name() + fallback(policy, "while it fails")
                : "on " + backend.name() + leases(policy)
                        + fallback(policy, "while " + backend.name() + " is unavailable");
    }

    private static String leases(ThrottlePolicy policy) {
        return policy.lease().isZero() ? "" : ", leased for " + Rate.format(policy.lease());
    }

    private String fallback(ThrottlePolicy policy, String condition) {
        return " ("
                + switch (policies.failureRule(policy)) {
                    case LOCAL -> "in memory";
                    case ALLOW -> "allows all";
                    case DENY -> "denies all";
                }
                + " " + condition + ")";
    }

    /** Warns if clients choose the whole key. */
    void warnOfClientChosenKey(ThrottlePolicy policy, RequestKey key) {
        if (!policy.isGlobal() && key.parts().stream().allMatch(KeyPart::chosenByClient)) {
            log.warn("Throttle policy '" + policy.name() + "' is keyed only by what clients choose ("
                    + String.join(" and ", policy.key())
                    + "): a client that changes it gets a new bucket. Add 'ip' or 'user' to the key, or add another"
                    + " policy");
        }
    }

    /** Warns if clients choose their tier. */
    void warnOfClientChosenTier(ThrottlePolicy policy, RequestKey key) {
        if (key.tier() != null && key.tier().chosenByClient()) {
            log.warn("Clients choose their tier of the throttle policy '" + policy.name() + "' (" + key.tier()
                    + "). Set 'tier' to 'role', or to 'bean:NAME' or 'expression:SPEL' that reads what clients can't"
                    + " choose");
        }
    }

    /**
     * Warns if one costly call may put the bucket of all calls into debt.
     *
     * @param unit the noun for what the policy limits, such as "request"
     */
    void warnOfDebtOfAll(ThrottlePolicy policy, String unit) {
        Policy configured = properties.policies().get(policy.name());
        if (policy.mode() == Mode.OFF || configured != null && configured.maxCost() != null) {
            return;
        }
        log.warn("Throttle policy '" + policy.name() + "' has 'settle' without a 'max-cost', and one bucket for all "
                + unit + "s: after a single " + unit + " that costs much more than its estimate, all others are denied"
                + " until time has paid the debt. "
                + (configured == null
                        ? "Give the annotation a key, or put the limit into a policy with a 'max-cost'"
                        : "Set '" + RateLimitProperties.property(policy.name()) + ".max-cost', or a 'key'"));
    }

    /** Warns if the part of a limit that this instance grants while the backend is unavailable is none. */
    void warnOfShare(ThrottlePolicy policy, RequestKey key) {
        double share = properties.redis().localShare();
        if (policy.mode() == Mode.OFF
                || policies.failureRule(policy) != FailureRule.LOCAL
                || location(policy).equals(IN_MEMORY)) {
            return;
        }
        Stream.of(
                        Stream.of(policy.spec()),
                        policy.tiers().values().stream(),
                        key.overrides().specs())
                .flatMap(specs -> specs)
                .filter(spec -> FailoverBucketStore.isNone(share, spec))
                .findFirst()
                .ifPresent(spec -> log.warn("Throttle policy '" + policy.name() + "' denies all calls of the limit "
                        + spec
                        + " while its backend is unavailable, since the share of this instance is less than one token:"
                        + " 'ratelimit.redis.local-share' is " + share + ". Set it to 1 divided by the number of"
                        + " instances, but at least 1 divided by the capacity; or accept this by '"
                        + RateLimitProperties.property(policy.name()) + ".on-backend-failure: deny'"));
    }

    /** Logs a hint for parts of the key that are text here, but may be converted to a number by the controller. */
    void hintAtNumbers(ThrottlePolicy policy, RequestKey key) {
        List<String> texts = key.parts().stream()
                .map(KeyPart::name)
                .filter(name -> name.startsWith("query:") || name.startsWith("path-variable:"))
                .toList();
        if (!texts.isEmpty()) {
            log.info("Throttle policy '" + policy.name() + "' is keyed by the text of " + String.join(" and ", texts)
                    + ". Where the controller takes a number, 5, 05 and 0x5 are one value but three keys: write "
                    + texts.stream().map(PolicyReport::number).collect(Collectors.joining(" and "))
                    + " in the key, or limit the method by @RateLimited(key = \"#argument\")");
        }
    }

    private static String number(String part) {
        int colon = part.indexOf(':');
        String function = part.startsWith("query:") ? "query" : "pathVariable";
        return "\"expression:number(" + function + "('"
                + part.substring(colon + 1).replace("'", "''") + "'))\"";
    }

    /**
     * Checks all annotations, which adds the throttlers of their limits, and logs the lines about annotated methods: one for
     * each policy, and warnings of probable mistakes.
     *
     * @throws RateLimitConfigurationException if an annotation is wrong or would not be enforced
     */
    void reportAnnotated(RateLimitedOperations operations) {
        for (PolicyThrottler throttler : throttlers.all()) {
            report(throttler.policy(), operations);
        }
    }

    private void report(ThrottlePolicy policy, RateLimitedOperations operations) {
        Policy configured = properties.policies().get(policy.name());
        AnnotatedPolicy limit = operations.limit(policy.name());
        if (limit != null) {
            log.info(describe(policy, limit.key(), limit.cost(), "call") + "; calls of "
                    + shown(operations.describeMethods(policy.name()))
                    + (configured == null ? ", limit written there" : ""));
            warnOfShare(policy, limit.key());
            if (operations.settlesOneBucket(policy.name())) {
                warnOfDebtOfAll(policy, "call");
            }
            if (configured != null) {
                warn(configured, policy, limit.key(), operations);
            }
        } else if (configured != null && configured.appliesTo() == AppliesTo.ANNOTATED) {
            log.warn("Throttle policy '" + policy.name() + "' limits nothing: it applies to annotated methods, but no"
                    + " @RateLimited names it. Put @RateLimited(\"" + policy.name()
                    + "\") on a method of a bean, or set '"
                    + RateLimitProperties.property(policy.name()) + ".applies-to: requests'");
        }
    }

    private void warn(Policy configured, ThrottlePolicy policy, RequestKey key, RateLimitedOperations operations) {
        String name = policy.name();
        String property = RateLimitProperties.property(name);
        if (!operations.givesKeys(name)) {
            warnOfClientChosenKey(policy, key);
            hintAtNumbers(policy, key);
        }
        warnOfClientChosenTier(policy, key);
        if (configured.queueLimit() != null && !operations.mayWait(name)) {
            log.warn("Throttle policy '" + name + "' has a queue-limit but no max-wait, so no call waits. Set the"
                    + " longest wait, for example '" + property + ".max-wait: 2s', or remove the queue-limit");
        }
        if (!policy.tiers().isEmpty() && key.tier() == null && !operations.givesTiers(name)) {
            log.warn("Throttle policy '" + name + "' has tiers, but nothing selects the tier of a call: the policy's"
                    + " own limit applies to all calls. Set '" + property
                    + ".tier: role', or 'tier' in @RateLimited, or remove the tiers");
        }
    }

    private static String shown(Set<String> places) {
        return places.size() == 1
                ? places.iterator().next()
                : places.size() + " methods, such as "
                        + places.stream().sorted().findFirst().orElseThrow();
    }
}
