package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Throttlers;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
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
}
