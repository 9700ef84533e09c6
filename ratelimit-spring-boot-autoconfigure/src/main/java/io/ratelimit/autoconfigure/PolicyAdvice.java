package io.ratelimit.autoconfigure;

import static io.ratelimit.autoconfigure.Advice.warning;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.KeyPart;
import io.ratelimit.key.RequestKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The advice about limits that are probably mistakes: about what is the same for requests and for calls of annotated methods,
 * and about annotated methods.
 */
record PolicyAdvice(RateLimitProperties properties, ConfiguredPolicies policies) {

    /** Returns the advice about a policy for requests. */
    Stream<Advice> ofRequests(PolicyThrottler throttler, RequestKey key, boolean settles) {
        ThrottlePolicy policy = throttler.policy();
        return Stream.of(
                        clientChosenKey(policy, key),
                        clientChosenTier(policy, key),
                        numbers(policy, key),
                        share(throttler, key),
                        settles && policy.isGlobal() ? debtOfAll(policy, "request") : Stream.<Advice>empty())
                .flatMap(advice -> advice);
    }

    /** Returns the advice about a policy for annotated methods, or about one that no annotation names. */
    Stream<Advice> ofCalls(PolicyThrottler throttler, RateLimitedOperations operations) {
        ThrottlePolicy policy = throttler.policy();
        Policy configured = configured(policy);
        AnnotatedPolicy limit = operations.limit(policy.name());
        if (limit == null) {
            return configured != null && configured.appliesTo() == AppliesTo.ANNOTATED
                    ? Stream.of(warning(
                            policy.name(),
                            "Throttle policy '" + policy.name()
                                    + "' limits nothing: it applies to annotated methods, but no @RateLimited names it."
                                    + " Put @RateLimited(\"" + policy.name() + "\") on a method of a bean, or set '"
                                    + RateLimitProperties.property(policy.name()) + ".applies-to: requests'"))
                    : Stream.empty();
        }
        boolean oneBucket = operations.settlesOneBucket(policy.name());
        return Stream.of(
                        share(throttler, limit.key()),
                        oneBucket ? debtOfAll(policy, "call") : Stream.<Advice>empty(),
                        configured == null
                                ? Stream.<Advice>empty()
                                : ofConfigured(configured, policy, limit.key(), operations))
                .flatMap(advice -> advice);
    }

    private static Stream<Advice> ofConfigured(
            Policy configured, ThrottlePolicy policy, RequestKey key, RateLimitedOperations operations) {
        String name = policy.name();
        String property = RateLimitProperties.property(name);
        boolean ownKeys = operations.givesKeys(name);
        return Stream.of(
                        ownKeys ? Stream.<Advice>empty() : clientChosenKey(policy, key),
                        ownKeys ? Stream.<Advice>empty() : numbers(policy, key),
                        clientChosenTier(policy, key),
                        when(
                                configured.queueLimit() != null && !operations.mayWait(name),
                                name,
                                "Throttle policy '" + name
                                        + "' has a queue-limit but no max-wait, so no call waits. Set the longest wait, for"
                                        + " example '" + property + ".max-wait: 2s', or remove the queue-limit"),
                        when(
                                !policy.tiers().isEmpty() && key.tier() == null && !operations.givesTiers(name),
                                name,
                                "Throttle policy '" + name
                                        + "' has tiers, but nothing selects the tier of a call: the policy's own limit"
                                        + " applies to all calls. Set '" + property
                                        + ".tier: role', or 'tier' in @RateLimited, or remove the tiers"))
                .flatMap(advice -> advice);
    }

    private static Stream<Advice> when(boolean condition, String policy, String text) {
        return condition ? Stream.of(warning(policy, text)) : Stream.empty();
    }

    private @Nullable Policy configured(ThrottlePolicy policy) {
        return properties.policies().get(policy.name());
    }

    /** Clients choose the whole key. */
    private static Stream<Advice> clientChosenKey(ThrottlePolicy policy, RequestKey key) {
        return when(
                !policy.isGlobal() && key.parts().stream().allMatch(KeyPart::chosenByClient),
                policy.name(),
                "Throttle policy '" + policy.name() + "' is keyed only by what clients choose ("
                        + String.join(" and ", policy.key())
                        + "): a client that changes it gets a new bucket. Add 'ip' or 'user' to the key, or add another"
                        + " policy");
    }

    private static Stream<Advice> clientChosenTier(ThrottlePolicy policy, RequestKey key) {
        return when(
                key.tier() != null && key.tier().chosenByClient(),
                policy.name(),
                "Clients choose their tier of the throttle policy '" + policy.name() + "' (" + key.tier()
                        + "). Set 'tier' to 'role', or to 'bean:NAME' or 'expression:SPEL' that reads what clients can't"
                        + " choose");
    }

    /** One costly call may put the bucket of all calls into debt. */
    private Stream<Advice> debtOfAll(ThrottlePolicy policy, String unit) {
        Policy configured = configured(policy);
        boolean bounded = configured != null && configured.maxCost() != null;
        return when(
                policy.mode() != Mode.OFF && !bounded,
                policy.name(),
                "Throttle policy '" + policy.name() + "' has 'settle' without a 'max-cost', and one bucket for all "
                        + unit + "s: after a single " + unit + " that costs much more than its estimate, all others are"
                        + " denied until time has paid the debt. "
                        + (configured == null
                                ? "Give the annotation a key, or put the limit into a policy with a 'max-cost'"
                                : "Set '" + RateLimitProperties.property(policy.name()) + ".max-cost', or a 'key'"));
    }

    /** The part of a limit that this instance grants while the backend is unavailable is none. */
    private Stream<Advice> share(PolicyThrottler throttler, RequestKey key) {
        ThrottlePolicy policy = throttler.policy();
        double share = properties.redis().localShare();
        if (policy.mode() == Mode.OFF
                || throttler.backend() == null
                || policies.failureRule(policy) != FailureRule.LOCAL) {
            return Stream.empty();
        }
        return Stream.of(
                        Stream.of(policy.spec()),
                        policy.tiers().values().stream(),
                        key.overrides().specs())
                .flatMap(specs -> specs)
                .filter(spec -> FailoverBucketStore.isNone(share, spec))
                .limit(1)
                .map(spec -> warning(
                        policy.name(),
                        "Throttle policy '" + policy.name() + "' denies all calls of the limit " + spec
                                + " while its backend is unavailable, since the share of this instance is less than one"
                                + " token: 'ratelimit.redis.local-share' is " + share + ". Set it to 1 divided by the"
                                + " number of instances, but at least 1 divided by the capacity; or accept this by '"
                                + RateLimitProperties.property(policy.name()) + ".on-backend-failure: deny'"));
    }

    /** Parts of the key are text here, but the controller may convert them to numbers. */
    private static Stream<Advice> numbers(ThrottlePolicy policy, RequestKey key) {
        List<String> texts = key.parts().stream()
                .map(KeyPart::name)
                .filter(name -> name.startsWith("query:") || name.startsWith("path-variable:"))
                .toList();
        return texts.isEmpty()
                ? Stream.empty()
                : Stream.of(new Advice(
                        false,
                        policy.name(),
                        "Throttle policy '" + policy.name() + "' is keyed by the text of " + String.join(" and ", texts)
                                + ". Where the controller takes a number, 5, 05 and 0x5 are one value but three keys:"
                                + " write "
                                + texts.stream().map(PolicyAdvice::number).collect(Collectors.joining(" and "))
                                + " in the key, or limit the method by @RateLimited(key = \"#argument\")"));
    }

    private static String number(String part) {
        int colon = part.indexOf(':');
        String function = part.startsWith("query:") ? "query" : "pathVariable";
        return "\"expression:number(" + function + "('"
                + part.substring(colon + 1).replace("'", "''") + "'))\"";
    }
}
