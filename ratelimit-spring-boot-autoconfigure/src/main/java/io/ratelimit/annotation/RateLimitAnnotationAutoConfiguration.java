package io.ratelimit.annotation;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.Advisor;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;

/** Auto-configuration for limits on the calls of methods with {@code @RateLimited}. */
@AutoConfiguration(afterName = "io.ratelimit.autoconfigure.RateLimitAutoConfiguration")
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
@Import(RateLimitAnnotationAutoConfiguration.ProxyCreator.class)
final class RateLimitAnnotationAutoConfiguration {

    @Bean
    @Lazy(false)
    RateLimitedOperations rateLimitedOperations(
            RateLimitProperties properties,
            ConfiguredPolicies policies,
            Throttlers throttlers,
            ObjectProvider<Current> current,
            ConfigurableListableBeanFactory beans) {
        return new RateLimitedOperations(
                policies.thatApplyTo(AppliesTo.ANNOTATED).stream()
                        .map(policy -> read(policy, policies, throttlers))
                        .toList(),
                properties.mode(),
                throttlers,
                current.getIfAvailable(() -> Current.NONE),
                policies.failures(),
                beans);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static Advisor rateLimitedAdvisor(BeanFactory beans) {
        return new RateLimitedAdvisor(beans);
    }

    /** Registers Spring's creator of proxies, without AspectJ and independently of {@code spring.aop.auto}. */
    static final class ProxyCreator implements ImportBeanDefinitionRegistrar, EnvironmentAware {

        private boolean byClass = true;

        @Override
        public void setEnvironment(Environment environment) {
            byClass = environment.getProperty("spring.aop.proxy-target-class", Boolean.class, true);
        }

        @Override
        public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
            AopConfigUtils.registerAutoProxyCreatorIfNecessary(registry);
            if (byClass) {
                AopConfigUtils.forceAutoProxyCreatorToUseClassProxying(registry);
            }
        }
    }

    private static AnnotatedPolicy read(ConfiguredPolicy policy, ConfiguredPolicies policies, Throttlers throttlers) {
        checkSelectsNoRequests(policy, policy.properties());
        return new AnnotatedPolicy(
                throttlers.get(policy.name()), policies.key(policy, throttlers.listener()), policies.cost(policy));
    }

    /** Checks that no property selects requests: it would have no effect. */
    private static void checkSelectsNoRequests(ConfiguredPolicy policy, Policy written) {
        check(written.paths().isEmpty(), policy.property("paths"), written.paths());
        check(written.excludePaths().isEmpty(), policy.property("exclude-paths"), written.excludePaths());
        check(written.methods().isEmpty(), policy.property("methods"), written.methods());
        check(written.condition() == null, policy.property("condition"), written.condition());
        check(written.phase() == null, policy.property("phase"), written.phase());
        check(written.settle() == null, policy.property("settle"), written.settle());
        check(written.refundOn().isEmpty(), policy.property("refund-on"), written.refundOn());
    }

    private static void check(boolean absent, String property, @Nullable Object value) {
        if (!absent) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    value,
                    "A policy with 'applies-to: annotated' limits calls of methods, not requests: remove the property, or"
                            + " set 'applies-to: requests'.");
        }
    }
}
