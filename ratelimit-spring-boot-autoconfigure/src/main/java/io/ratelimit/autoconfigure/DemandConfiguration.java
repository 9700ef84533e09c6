package io.ratelimit.autoconfigure;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.logging.ShadowDemandLog;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;

/** Configuration of the measurement of demand, imported if its property enables it or an endpoint shows the demand. */
@Configuration(proxyBeanMethods = false)
@ConditionalOnBooleanProperty(name = "ratelimit.demand.enabled", matchIfMissing = true)
public class DemandConfiguration {

    @Bean(initMethod = "start")
    DemandListener rateLimitDemandListener(TimeSource time) {
        return new DemandListener(time);
    }

    @Bean(initMethod = "start")
    @Lazy(false)
    ShadowDemandLog rateLimitShadowDemandLog(
            ObjectProvider<Throttlers> throttlers, DemandListener demand, TimeSource time) {
        return new ShadowDemandLog(throttlers::getObject, demand, time);
    }
}
