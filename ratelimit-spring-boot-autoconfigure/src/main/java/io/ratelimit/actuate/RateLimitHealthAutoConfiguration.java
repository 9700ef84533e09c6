package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;

/** Auto-configuration for the health indicator of the backend that holds the buckets. */
@AutoConfiguration(afterName = "io.ratelimit.autoconfigure.RateLimitAutoConfiguration")
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnEnabledHealthIndicator("ratelimit")
public final class RateLimitHealthAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean(name = "ratelimitHealthIndicator")
    RateLimitHealthIndicator ratelimitHealthIndicator(
            Throttlers throttlers, ObjectProvider<Backend> backend, ConfiguredPolicies policies) {
        return new RateLimitHealthIndicator(
                throttlers, backend.getIfAvailable(), policy -> policies.failureRule(policy) == FailureRule.DENY);
    }

    /**
     * A health indicator for the backend of the limits. It is down only if requests are denied because the backend fails. Where
     * a fallback decides instead, it stays up: a load balancer must not take all instances out of rotation then.
     *
     * <p>Each check probes the backend. An outage or a misconfiguration shows without traffic, and so does its end: an instance
     * out of rotation gets no requests that would show it.
     */
    static final class RateLimitHealthIndicator extends AbstractHealthIndicator {

        private final Throttlers throttlers;
        private final @Nullable Backend backend;
        private final Predicate<ThrottlePolicy> denies;

        /**
         * @param backend the remote backend; null if there is none
         * @param denies whether a policy denies calls while the backend fails
         */
        RateLimitHealthIndicator(Throttlers throttlers, @Nullable Backend backend, Predicate<ThrottlePolicy> denies) {
            super("The health of the rate limits could not be determined");
            this.throttlers = throttlers;
            this.backend = backend;
            this.denies = denies;
        }

        @Override
        protected void doHealthCheck(Health.Builder builder) {
            builder.up();
            List<ThrottlePolicy> remote = throttlers.all().stream()
                    .filter(throttler -> throttler.policy().mode() != Mode.OFF && throttler.backend() != null)
                    .map(PolicyThrottler::policy)
                    .toList();
            if (backend != null && !remote.isEmpty()) {
                backend.probe();
                report(builder, backend.name(), backend.state(), remote);
            }
        }

        private void report(Health.Builder builder, String name, Backend.State state, List<ThrottlePolicy> remote) {
            List<String> denying = state.condition() == Condition.UP
                    ? List.of()
                    : remote.stream()
                            .filter(policy -> policy.mode() == Mode.ENFORCE && denies.test(policy))
                            .map(ThrottlePolicy::name)
                            .toList();
            builder.withDetail("backend", name)
                    .withDetail("condition", state.condition())
                    .withDetail("since", state.since());
            if (state.cause() != null) {
                builder.withDetail("cause", state.cause());
            }
            if (!denying.isEmpty()) {
                builder.down().withDetail("refusing", denying);
            }
        }
    }
}
