package io.ratelimit.actuate;

import io.ratelimit.TimeSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Configuration of the counter of denied keys, imported for each endpoint that shows them. */
@Configuration(proxyBeanMethods = false)
public class DeniedKeysConfiguration {

    @Bean
    DeniedKeys rateLimitDeniedKeys(TimeSource time) {
        return new DeniedKeys(time);
    }
}
