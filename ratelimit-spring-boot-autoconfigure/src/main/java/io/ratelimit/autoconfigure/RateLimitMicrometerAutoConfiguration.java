package io.ratelimit.autoconfigure;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimit.Backend;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;

/** Auto-configuration for the meters of policies and backends, for applications with a {@link MeterRegistry}. */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration"
        })
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean({RateLimitProperties.class, MeterRegistry.class})
public final class RateLimitMicrometerAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    RateLimitMeters rateLimitMeters(
            MeterRegistry registry, ConfiguredPolicies policies, ObjectProvider<RateLimitedOperations> operations) {
        return new RateLimitMeters(
                registry,
                ConfiguredPolicies::backendOf,
                policies::limitsInFlight,
                RateLimitedOperations.oneBucket(operations),
                policy -> !policy.isGlobal() || isAnnotated(policies.properties(policy.name())));
    }

    private static boolean isAnnotated(@Nullable Policy configured) {
        return configured != null && configured.appliesTo() == AppliesTo.ANNOTATED;
    }

    @Bean
    @Lazy(false)
    @ConditionalOnBean(Backend.class)
    Backend.Listener rateLimitBackendTimers(MeterRegistry registry, Backend backend) {
        Backend.Listener timers = RateLimitMeters.timers(registry, backend);
        backend.addListener(timers);
        return timers;
    }
}
