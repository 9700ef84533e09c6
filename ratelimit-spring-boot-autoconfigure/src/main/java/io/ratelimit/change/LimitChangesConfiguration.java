package io.ratelimit.change;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The changes of limits of this instance, where there are none for all instances. Imported by what makes changes. */
@Configuration(proxyBeanMethods = false)
public class LimitChangesConfiguration {

    @Bean
    @ConditionalOnMissingBean(name = "rateLimitChanges")
    LimitChanges rateLimitChanges(Throttlers throttlers, TimeSource time) {
        return new LimitChanges(throttlers, time, null);
    }
}
