package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.RateLimitHealthIndicator;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitProperties;
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
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@ConditionalOnBean(name = RateLimitAutoConfiguration.POLICIES)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnEnabledHealthIndicator("ratelimit")
public final class RateLimitHealthAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean(name = "ratelimitHealthIndicator")
    RateLimitHealthIndicator ratelimitHealthIndicator(
            Throttlers throttlers, ObjectProvider<Backend> backend, RateLimitProperties properties, BucketStore store) {
        return new RateLimitHealthIndicator(
                throttlers,
                backend.getIfAvailable(),
                properties.onBackend(store),
                policy -> properties.failureRuleOf(policy) == FailureRule.DENY);
    }
}
