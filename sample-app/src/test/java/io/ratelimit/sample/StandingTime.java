package io.ratelimit.sample;

import io.ratelimit.ManualTimeSource;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;

/** Time that stands still until a test moves it. */
@TestConfiguration(proxyBeanMethods = false)
class StandingTime {

    @Bean
    ManualTimeSource time() {
        return new ManualTimeSource();
    }
}
