package io.ratelimit.annotation;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations.AnnotatedPolicy;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.ConfiguredPolicies.ConfiguredPolicy;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.policy.RateLimitProperties.Policy;
import java.util.List;
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
public final class RateLimitAnnotationAutoConfiguration {

    @Bean
    @Lazy(false)
    RateLimitedOperations rateLimitedOperations(
            RateLimitProperties properties,
            ConfiguredPolicies policies,
            Throttlers throttlers,
            ObjectProvider<Current> current,
            ConfigurableListableBeanFactory beans) {
        return new RateLimitedOperations(
                new AnnotatedPolicyReader(policies, throttlers).read(),
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

    /** Reads the policies that limit annotated methods. */
    private record AnnotatedPolicyReader(ConfiguredPolicies policies, Throttlers throttlers) {

        /** @throws InvalidConfigurationPropertyValueException if a policy has a property that is only for requests */
        List<AnnotatedPolicy> read() {
            return policies.thatApplyTo(AppliesTo.ANNOTATED).stream()
                    .map(this::read)
                    .toList();
        }

        private AnnotatedPolicy read(ConfiguredPolicy policy) {
            checkHasNoRequests(RateLimitProperties.property(policy.name()), policy.properties());
            return new AnnotatedPolicy(
                    throttlers.get(policy.name()),
                    policies.key(policy, throttlers.listener()),
                    policies.cost(policy),
                    policies.failures());
        }

        /** Checks that no property selects requests: it would have no effect. */
        private static void checkHasNoRequests(String property, Policy policy) {
            check(policy.paths().isEmpty(), property + ".paths", policy.paths());
            check(policy.excludePaths().isEmpty(), property + ".exclude-paths", policy.excludePaths());
            check(policy.methods().isEmpty(), property + ".methods", policy.methods());
            check(policy.condition() == null, property + ".condition", policy.condition());
            check(policy.phase() == null, property + ".phase", policy.phase());
            check(policy.settle() == null, property + ".settle", policy.settle());
            check(policy.refundOn().isEmpty(), property + ".refund-on", policy.refundOn());
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
}
