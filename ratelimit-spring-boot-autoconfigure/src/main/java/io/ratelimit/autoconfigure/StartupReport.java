package io.ratelimit.autoconfigure;

import io.ratelimit.Backend;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.RequestCost;
import io.ratelimit.key.RequestKey;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.Policy;
import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;

/**
 * The report about all limits when the application starts: a summary, one line for each policy, and advice about probable
 * mistakes. An application without requests has limits of annotated methods alone. Where most buckets are is in the summary;
 * a policy's line has the place only if it is another.
 */
class StartupReport implements SmartInitializingSingleton {

    static final Log logger = LogFactory.getLog(StartupReport.class);
    private static final int TOO_MANY_REQUESTS = 429;
    private static final Pattern LIMIT = Pattern.compile("(?:([^.]+)\\.)?policies\\..+\\.(?:rate|in-?[fF]light)");

    final RateLimitProperties properties;
    final Throttlers throttlers;
    final @Nullable RateLimitedOperations operations;
    private final ConfiguredPolicies policies;
    private final Environment environment;
    private String usualPlace = "in memory";

    /**
     * @param throttlers the throttlers of all policies, with those of limits in annotations
     * @param operations the annotated methods, if the application supports annotations
     */
    StartupReport(
            RateLimitProperties properties,
            ConfiguredPolicies policies,
            Throttlers throttlers,
            @Nullable RateLimitedOperations operations,
            Environment environment) {
        this.properties = properties;
        this.policies = policies;
        this.throttlers = throttlers;
        this.operations = operations;
        this.environment = environment;
    }

    /**
     * Runs after the annotations are checked, which adds the throttlers of their limits.
     *
     * @throws RateLimitConfigurationException if an annotation is wrong or would not be enforced
     */
    @Override
    public final void afterSingletonsInstantiated() {
        PolicyAdvice advice = new PolicyAdvice(policies, new Advice());
        advice.warnOfUnusedBackend(
                throttlers.all().stream().map(ConfiguredPolicies::backendOf).anyMatch("custom"::equals), environment);
        throttlers.all().forEach(throttler -> advice.adviseOnLease(throttler.policy()));
        if (operations != null) {
            throttlers.all().forEach(throttler -> advice.adviseOnCalls(throttler, operations));
        }
        if (throttlers.all().isEmpty()) {
            logger.warn(
                    "There are no policies below 'ratelimit.policies': nothing is limited. Add a policy, for example"
                            + " 'ratelimit.policies.api.rate: 600/1m', and check the indentation of 'policies'");
        } else {
            usualPlace = usualPlace();
            logger.info(summary(address()));
            String misplaced = properties.policies().isEmpty() ? misplaced(environment) : null;
            if (misplaced != null) {
                logger.warn("There are no policies below 'ratelimit.policies', and '" + misplaced
                        + "' limits nothing. Correct its name, or the indentation of 'policies'");
            }
        }
        for (PolicyThrottler throttler : throttlers.all()) {
            String line = line(throttler.policy());
            if (line != null) {
                logger.info(line);
            }
        }
        adviseOnRequests(advice);
        advice.advice().log(logger);
    }

    /** Returns the name of a policy's limit elsewhere than below {@code ratelimit.policies}; null if there is none. */
    private static @Nullable String misplaced(Environment environment) {
        return ((ConfigurableEnvironment) environment)
                .getPropertySources().stream()
                        .filter(EnumerablePropertySource.class::isInstance)
                        .flatMap(source -> Stream.of(((EnumerablePropertySource<?>) source).getPropertyNames()))
                        .filter(StartupReport::isMisplaced)
                        .findFirst()
                        .orElse(null);
    }

    private static boolean isMisplaced(String property) {
        Matcher limit = LIMIT.matcher(property);
        return limit.matches()
                && (limit.group(1) == null
                        || RateLimitConfigurationException.nearest(limit.group(1), Set.of("ratelimit"))
                                .isPresent());
    }

    private String usualPlace() {
        Map<String, Integer> places = new LinkedHashMap<>();
        for (PolicyThrottler throttler : throttlers.all()) {
            places.merge(place(throttler.policy()), 1, Integer::sum);
        }
        return Collections.max(places.entrySet(), Map.Entry.comparingByValue()).getKey();
    }

    /** Returns the line of a policy; null if neither requests nor annotated methods use it. */
    @Nullable
    String line(ThrottlePolicy policy) {
        AnnotatedPolicy limit = operations == null ? null : operations.limit(policy.name());
        return operations == null || limit == null ? null : line(limit, policy, operations);
    }

    /** Returns where the client's address comes from; null without requests. */
    @Nullable
    String address() {
        return null;
    }

    void adviseOnRequests(PolicyAdvice advice) {}

    private String summary(@Nullable String address) {
        return "Rate limits: " + count(Mode.ENFORCE) + " enforced, " + count(Mode.SHADOW) + " in shadow mode, "
                + count(Mode.OFF) + " off; buckets " + usualPlace
                + (address == null ? "" : "; client address " + address)
                + (address == null || properties.excludePaths().isEmpty()
                        ? ""
                        : "; excluded: " + String.join(", ", properties.excludePaths()));
    }

    private int count(Mode mode) {
        int count = 0;
        for (PolicyThrottler throttler : throttlers.all()) {
            count += throttler.policy().mode() == mode ? 1 : 0;
        }
        return count;
    }

    private String line(AnnotatedPolicy limit, ThrottlePolicy policy, RateLimitedOperations operations) {
        return limit(policy, limit.key(), limit.cost(), "call")
                + "; calls of " + shown(operations.describeMethods(policy.name()))
                + (policies.get(policy.name()) == null ? " (declared by @RateLimited)" : "")
                + effects(policy)
                + unusualPlace(policy);
    }

    /** @param unit the noun for what the policy limits, such as "request" */
    static String limit(ThrottlePolicy policy, RequestKey key, RequestCost cost, String unit) {
        return policy.name() + mode(policy.mode()) + ": " + policy.spec() + buckets(policy, key, unit)
                + tokens(cost, unit) + shares(policy, key) + tiers(policy, key)
                + (key.limit() == null ? "" : ", a " + unit + "'s own limit by " + key.limit())
                + (key.overrides().isEmpty() ? "" : ", " + key.overrides().size() + " of them overridden");
    }

    private static String mode(Mode mode) {
        return switch (mode) {
            case ENFORCE -> "";
            case SHADOW -> " (shadow mode)";
            case OFF -> " (off)";
        };
    }

    private static String buckets(ThrottlePolicy policy, RequestKey key, String unit) {
        boolean hasBuckets = policy.spec().hasRate();
        return policy.isGlobal()
                ? hasBuckets ? ", one bucket" : " in all"
                : (hasBuckets ? ", a bucket for each " : " for each ")
                        + String.join(" and ", policy.key())
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

    private static String shares(ThrottlePolicy policy, RequestKey key) {
        return policy.shares() == null
                ? ""
                : ", in shares (" + policy.shares() + ")" + (key.tier() == null ? "" : " by " + key.tier());
    }

    private static String tiers(ThrottlePolicy policy, RequestKey key) {
        return key.tier() == null || policy.shares() != null
                ? ""
                : new TreeMap<>(policy.tiers())
                                .entrySet().stream()
                                        .map(tier -> tier.getKey() + ": " + tier.getValue())
                                        .collect(Collectors.joining("; ", ", in tiers (", ")"))
                        + " by " + key.tier();
    }

    /** Returns what happens to a call for which the tokens are missing. */
    String effects(ThrottlePolicy policy) {
        Policy configured = properties.policies().get(policy.name());
        int status = configured == null ? TOO_MANY_REQUESTS : configured.status();
        RejectionDelay delay = configured == null ? RejectionDelay.NONE : configured.rejectionDelay();
        return (policy.maxWait().isZero()
                        ? ""
                        : "; waits at most " + Rate.format(policy.maxWait()) + ", queue " + policy.queueLimit())
                + (status == TOO_MANY_REQUESTS ? "" : "; status " + status)
                + (delay.isNone() ? "" : "; rejections delayed by " + delay);
    }

    /** Returns where the buckets are, if the summary names another place. */
    String unusualPlace(ThrottlePolicy policy) {
        String place = place(policy);
        return place.equals(usualPlace) ? "" : "; " + place;
    }

    /** Returns where the policy's buckets are, and what decides while that place is unavailable. */
    private String place(ThrottlePolicy policy) {
        PolicyThrottler throttler = throttlers.get(policy.name());
        Backend backend = throttler.backend();
        if (backend == null) {
            return "in memory";
        }
        return ConfiguredPolicies.backendOf(throttler).equals("custom")
                ? "in the application's own " + backend.name() + fallback(policy, "while it fails")
                : "on " + backend.name()
                        + (policy.lease().isZero() ? "" : ", leased for " + Rate.format(policy.lease()))
                        + fallback(policy, "while " + backend.name() + " is unavailable");
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

    private static String shown(Set<String> places) {
        return places.size() == 1
                ? places.iterator().next()
                : places.size() + " methods, such as "
                        + places.stream().sorted().findFirst().orElseThrow();
    }
}
