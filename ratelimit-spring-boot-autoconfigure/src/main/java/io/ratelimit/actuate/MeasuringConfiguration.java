package io.ratelimit.actuate;

import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Configuration of the listeners whose measurements endpoints show, imported for each of these endpoints. */
@Configuration(proxyBeanMethods = false)
class MeasuringConfiguration {

    @Bean
    DeniedKeys rateLimitDeniedKeys(TimeSource time) {
        return new DeniedKeys(time);
    }

    /** Configuration of the measurement of demand. Without an endpoint, the configuration of the log measures if it is enabled. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnBooleanProperty(name = "ratelimit.demand.enabled", matchIfMissing = true)
    static class OfDemand {

        @Bean(initMethod = "start")
        DemandListener rateLimitDemandListener(TimeSource time) {
            return new DemandListener(time);
        }
    }
}
