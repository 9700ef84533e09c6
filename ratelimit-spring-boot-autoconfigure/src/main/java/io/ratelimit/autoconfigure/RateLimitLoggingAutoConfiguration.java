package io.ratelimit.autoconfigure;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;

/** Auto-configuration for the daily log of the demand of policies in shadow mode, and for its measurement. */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
            "io.ratelimit.actuate.RateLimitActuateAutoConfiguration"
        })
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
public final class RateLimitLoggingAutoConfiguration {

    /** Measures demand where the property enables it, also without an endpoint that shows it. */
    @Bean(initMethod = "start")
    @ConditionalOnBooleanProperty("ratelimit.demand.enabled")
    @ConditionalOnMissingBean(name = "rateLimitDemandListener")
    static DemandListener rateLimitDemandListener(TimeSource time) {
        return new DemandListener(time);
    }

    @Bean(initMethod = "start")
    @Lazy(false)
    @ConditionalOnBean(name = "rateLimitDemandListener")
    ShadowDemandLog rateLimitShadowDemandLog(
            Throttlers throttlers,
            DemandListener demand,
            ObjectProvider<RateLimitedOperations> operations,
            TimeSource time) {
        return new ShadowDemandLog(throttlers, demand, RateLimitedOperations.oneBucket(operations), time);
    }
}
