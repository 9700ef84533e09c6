package io.ratelimit.logging;

import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.key.FailureListener;
import io.ratelimit.policy.ConfiguredPolicies;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;

/** Auto-configuration for the lines of the log while the application runs. */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
            "io.ratelimit.actuate.RateLimitActuateAutoConfiguration"
        })
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
public final class RateLimitLoggingAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean
    FailureListener rateLimitFailureListener(TimeSource time) {
        return new FailureLog(time)::failed;
    }

    @Bean
    ThrottleListener rateLimitLog(TimeSource time) {
        return ThrottleListener.of(List.of(new DenialLog(time), new ReconfigurationLog()));
    }

    @Bean(initMethod = "start")
    @Lazy(false)
    @ConditionalOnBean(name = "rateLimitDemandListener")
    ShadowDemandLog rateLimitShadowDemandLog(
            ObjectProvider<Throttlers> throttlers, DemandListener demand, TimeSource time) {
        return new ShadowDemandLog(throttlers::getObject, demand, time);
    }
}
