package io.ratelimit.autoconfigure.test;

import io.ratelimit.ManualTimeSource;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Auto-configuration for tests with {@link AutoConfigureRateLimit}. */
@AutoConfiguration(before = RateLimitAutoConfiguration.class)
final class RateLimitTestAutoConfiguration {

    @Bean
    @ConditionalOnMissingBean(TimeSource.class)
    ManualTimeSource rateLimitManualTimeSource() {
        return new ManualTimeSource();
    }

    @Bean
    UsedBuckets rateLimitUsedBuckets() {
        return new UsedBuckets();
    }
}
