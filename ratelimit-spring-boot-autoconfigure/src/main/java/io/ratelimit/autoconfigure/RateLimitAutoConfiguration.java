package io.ratelimit.autoconfigure;

import io.ratelimit.BucketStore;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitProperties.AppliesTo;
import io.ratelimit.key.FailureListener;
import io.ratelimit.logging.DenialLog;
import io.ratelimit.logging.FailureLog;
import io.ratelimit.logging.ReconfigurationLog;
import java.util.List;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnNotWebApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesBinding;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.ConfigurableEnvironment;

/** Auto-configuration for throttlers by the policies of {@code ratelimit.*}. */
@AutoConfiguration
@Conditional(RateLimitEnabledCondition.class)
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitAutoConfiguration.class);

    private final List<ThrottlePolicy> policies;

    RateLimitAutoConfiguration(RateLimitProperties properties, ConfigurableEnvironment environment) {
        PolicyNames.check(properties.policies().keySet(), environment);
        properties.redis().check();
        this.policies = properties.toPolicies();
    }

    @Bean
    @ConfigurationPropertiesBinding
    static NumberConverter rateLimitNumberConverter() {
        return new NumberConverter();
    }

    @Bean
    @ConfigurationPropertiesBinding
    static OverrideTextConverter rateLimitOverrideTextConverter() {
        return new OverrideTextConverter();
    }

    @Bean
    @ConditionalOnMissingBean
    TimeSource rateLimitTimeSource() {
        return new SystemTimeSource();
    }

    @Bean
    @ConditionalOnMissingBean
    BucketStore bucketStore(RateLimitProperties properties, TimeSource time) {
        if (properties.usesRedis()) {
            throw new RateLimitConfigurationException(
                    "Limits are to be kept in Redis ('backend: redis'), but the auto-configuration for that is not there:"
                            + " instances would share nothing.",
                    "Don't exclude 'RateLimitRedisAutoConfiguration', or say 'ratelimit.backend: local'. Where the application"
                            + " is processed ahead of time, 'backend: redis' must be there when it is built.",
                    "ratelimit.backend");
        }
        return BucketStore.local(time);
    }

    @Bean
    @ConditionalOnMissingBean
    DenialLog denialLog(TimeSource time) {
        return new DenialLog(time);
    }

    @Bean
    @ConditionalOnMissingBean
    ReconfigurationLog rateLimitReconfigurationLog() {
        return new ReconfigurationLog();
    }

    @Bean
    @ConditionalOnMissingBean
    FailureListener rateLimitFailureListener(TimeSource time) {
        return new FailureLog(time)::failed;
    }

    @Bean
    @ConditionalOnMissingBean
    Throttlers throttlers(
            BucketStore store,
            TimeSource time,
            ObjectProvider<ThrottleListener> listeners,
            RateLimitProperties properties) {
        Throttlers throttlers = new Throttlers(policies, store, time, new ThrottleListeners(listeners.orderedStream()));
        properties.policies().forEach((name, policy) -> throttlers
                .get(name)
                .checkChanges(changed -> PolicyCosts.check(policy, changed)));
        return throttlers;
    }

    /** Policies apply to the requests of a servlet application; without one they wait to be asked by the code. */
    @Configuration(proxyBeanMethods = false)
    @Lazy(false)
    @ConditionalOnNotWebApplication
    static class WithoutWeb {

        WithoutWeb(RateLimitProperties properties) {
            properties.policies().forEach((name, policy) -> {
                if (policy.appliesTo() == AppliesTo.REQUESTS) {
                    logger.info(
                            "Throttle policy '" + name
                                    + "' limits no requests, as this is no web application; code may ask it by the bean Throttlers");
                }
            });
        }
    }

    /** The filter is a servlet filter. */
    @Configuration(proxyBeanMethods = false)
    @Lazy(false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class Reactive {

        Reactive() {
            throw new RateLimitConfigurationException(
                    "ratelimit limits the requests of servlet applications, and this one is reactive (WebFlux): its"
                            + " requests would not be limited at all.",
                    "Build on 'spring-boot-starter-webmvc', remove 'ratelimit-spring-boot-starter', or say"
                            + " 'ratelimit.enabled: false'.");
        }
    }

    /** Endpoints are those of Spring MVC. */
    @Configuration(proxyBeanMethods = false)
    @Lazy(false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnMissingClass("org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean")
    static class ServletWithoutMvc {

        ServletWithoutMvc() {
            throw new RateLimitConfigurationException(
                    "ratelimit needs Spring MVC to limit the requests of a servlet application, and"
                            + " 'spring-boot-webmvc' is not on the class path: no request would be limited.",
                    "Add 'spring-boot-starter-webmvc', or say 'ratelimit.enabled: false'.");
        }
    }
}
