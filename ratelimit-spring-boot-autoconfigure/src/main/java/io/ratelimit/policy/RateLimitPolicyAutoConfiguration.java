package io.ratelimit.policy;

import io.ratelimit.key.FailureListener;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import java.util.Map;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.properties.ConfigurationPropertiesBinding;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.ConfigurableEnvironment;

/** Auto-configuration for the policies below {@code ratelimit}, which all others stand on. */
@AutoConfiguration
@Conditional(RateLimitEnabledCondition.class)
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitPolicyAutoConfiguration {

    private final Map<String, ConfiguredPolicy> policies;

    /** Checks and reads all policies here, so that a mistake stops every application, also one with its own beans. */
    RateLimitPolicyAutoConfiguration(RateLimitProperties properties, ConfigurableEnvironment environment) {
        PolicyNames.check(properties.policies().keySet(), environment);
        properties.clientIp().check();
        properties.redis().check();
        this.policies = PolicyReader.read(properties);
    }

    @Bean
    @ConfigurationPropertiesBinding
    static ScalarConverter rateLimitScalarConverter() {
        return new ScalarConverter();
    }

    @Bean(ConfiguredPolicies.BEAN_NAME)
    ConfiguredPolicies rateLimitConfiguredPolicies(
            ListableBeanFactory beans, ObjectProvider<FailureListener> failures) {
        return new ConfiguredPolicies(policies, beans, failures.getIfAvailable(() -> (policy, what, why) -> {}));
    }
}
