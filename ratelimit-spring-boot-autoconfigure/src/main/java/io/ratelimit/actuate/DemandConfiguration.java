package io.ratelimit.actuate;

import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Configuration of the measurement of demand, imported if its property enables it or an endpoint shows the demand. */
@Configuration(proxyBeanMethods = false)
@ConditionalOnBooleanProperty(name = "ratelimit.demand.enabled", matchIfMissing = true)
public class DemandConfiguration {

    @Bean(initMethod = "start")
    DemandListener rateLimitDemandListener(TimeSource time) {
        return new DemandListener(time);
    }
}
