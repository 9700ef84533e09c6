package io.ratelimit.policy;

import io.ratelimit.key.FailureListener;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import java.util.Map;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.context.properties.ConfigurationPropertiesBinding;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.ConfigurableEnvironment;

/** Configuration of the policies below {@code ratelimit}, imported by the auto-configuration of the throttlers. */
@Configuration(proxyBeanMethods = false)
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public class PolicyConfiguration {

    private final RateLimitProperties properties;
    private final Map<String, ConfiguredPolicy> policies;

    /** Checks and reads all policies here, so that a mistake stops every application, also one with its own beans. */
    PolicyConfiguration(RateLimitProperties properties, ConfigurableEnvironment environment) {
        PolicyNames.check(properties.policies().keySet(), environment);
        PropertyChecks.check(properties.clientIp());
        PropertyChecks.check(properties.redis());
        this.properties = properties;
        this.policies = PolicyReader.read(properties);
    }

    @Bean
    @ConfigurationPropertiesBinding
    static ScalarConverter rateLimitScalarConverter() {
        return new ScalarConverter();
    }

    @Bean(ConfiguredPolicies.BEAN_NAME)
    ConfiguredPolicies rateLimitConfiguredPolicies(ListableBeanFactory beans, FailureListener failures) {
        return new ConfiguredPolicies(properties, policies, beans, failures);
    }
}
