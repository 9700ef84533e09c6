package io.ratelimit.logging;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;

/** Auto-configuration for the daily log of the demand of policies in shadow mode. */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
            "io.ratelimit.actuate.RateLimitActuateAutoConfiguration"
        })
@ConditionalOnBean(name = "rateLimitDemandListener")
public final class RateLimitLoggingAutoConfiguration {

    @Bean(initMethod = "start")
    @Lazy(false)
    ShadowDemandLog rateLimitShadowDemandLog(
            ObjectProvider<Throttlers> throttlers, DemandListener demand, TimeSource time) {
        return new ShadowDemandLog(throttlers::getObject, demand, time);
    }
}
