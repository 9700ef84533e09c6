package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.TimeSource;
import io.ratelimit.actuate.DeniedKeys;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The keys denied most, counted where anybody shows them: the endpoint or the dashboard. */
@Configuration(proxyBeanMethods = false)
class DeniedKeysConfiguration {

    @Bean
    @ConditionalOnMissingBean
    DeniedKeys rateLimitDeniedKeys(TimeSource time) {
        return new DeniedKeys(time);
    }
}
