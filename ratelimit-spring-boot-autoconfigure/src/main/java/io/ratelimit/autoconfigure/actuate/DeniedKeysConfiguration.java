package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.TimeSource;
import io.ratelimit.actuate.DeniedKeys;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Configuration of the counter of denied keys, imported for each endpoint that shows them. */
@Configuration(proxyBeanMethods = false)
class DeniedKeysConfiguration {

    @Bean
    DeniedKeys rateLimitDeniedKeys(TimeSource time) {
        return new DeniedKeys(time);
    }
}
