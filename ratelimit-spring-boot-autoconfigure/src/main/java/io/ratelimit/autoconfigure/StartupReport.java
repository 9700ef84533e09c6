package io.ratelimit.autoconfigure;

import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitProperties;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;

/**
 * The report about all limits when the application starts: a summary, one line for each policy, and advice about probable
 * mistakes. An application without requests has limits of annotated methods alone.
 */
class StartupReport implements SmartInitializingSingleton {

    static final Log logger = LogFactory.getLog(StartupReport.class);

    final RateLimitProperties properties;
    final Throttlers throttlers;
    final @Nullable RateLimitedOperations operations;
    final PolicyAdvice advice;
    private final ConfiguredPolicies policies;

    /**
     * @param throttlers the throttlers of all policies, with those of limits in annotations
     * @param operations the annotated methods, if the application supports annotations
     */
    StartupReport(
            RateLimitProperties properties,
            ConfiguredPolicies policies,
            Throttlers throttlers,
            @Nullable RateLimitedOperations operations) {
        this.properties = properties;
        this.policies = policies;
        this.throttlers = throttlers;
        this.operations = operations;
        this.advice = new PolicyAdvice(properties, policies);
    }

    /**
     * Runs after the annotations are checked, which adds the throttlers of their limits.
     *
     * @throws RateLimitConfigurationException if an annotation is wrong or would not be enforced
     */
    @Override
    public final void afterSingletonsInstantiated() {
        PolicyLines lines = new PolicyLines(properties, policies, throttlers);
        Stream<Advice> ofCalls = ofCalls();
        if (throttlers.all().isEmpty()) {
            logger.warn(
                    "There are no policies below 'ratelimit.policies': nothing is limited. Add a policy, for example"
                            + " 'ratelimit.policies.api.rate: 600/1m', and check the indentation of 'policies'");
        } else {
            logger.info(lines.summary(address()));
        }
        for (PolicyThrottler throttler : lines.inOrder()) {
            String line = line(throttler.policy(), lines);
            if (line != null) {
                logger.info(line);
            }
        }
        Advice.log(Stream.concat(ofCalls, ofRequests()), logger);
    }

    private Stream<Advice> ofCalls() {
        List<Advice> ofCalls = new ArrayList<>();
        for (PolicyThrottler throttler : throttlers.all()) {
            if (operations != null) {
                advice.ofCalls(throttler, operations).forEach(ofCalls::add);
            }
        }
        return ofCalls.stream();
    }

    /** Returns the line of a policy; null if neither requests nor annotated methods use it. */
    @Nullable
    String line(ThrottlePolicy policy, PolicyLines lines) {
        if (operations == null) {
            return null;
        }
        AnnotatedPolicy limit = operations.limit(policy.name());
        return limit == null ? null : lines.of(limit, policy, operations);
    }

    /** Returns where the client's address comes from; null without requests. */
    @Nullable
    String address() {
        return null;
    }

    /** Returns the advice about policies for requests. */
    Stream<Advice> ofRequests() {
        return Stream.empty();
    }
}
