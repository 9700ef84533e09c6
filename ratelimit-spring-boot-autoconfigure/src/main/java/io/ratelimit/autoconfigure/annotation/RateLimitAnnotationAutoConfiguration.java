package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedAdvisor;
import io.ratelimit.annotation.RateLimitedCheck;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.KeyBeans;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.FailureListener;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.aop.framework.ProxyConfig;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.util.function.SingletonSupplier;

/** Auto-configuration for the limits on calls of methods that have {@code @RateLimited}. */
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@ConditionalOnBean(RateLimitProperties.class)
@Import(RateLimitAnnotationAutoConfiguration.ProxyCreator.class)
public final class RateLimitAnnotationAutoConfiguration {

    @Bean
    @Lazy
    RateLimitedOperations rateLimitedOperations(
            RateLimitProperties properties,
            Throttlers throttlers,
            ObjectProvider<CurrentRequest> current,
            FailureListener failures,
            ConfigurableListableBeanFactory beans) {
        return new RateLimitedOperations(
                new AnnotatedPolicyReader(properties, throttlers, new KeyBeans(beans), failures).read(),
                properties.mode(),
                throttlers,
                current.getIfAvailable(() -> CurrentRequest.NONE),
                failures,
                beans);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static RateLimitedAdvisor rateLimitedAdvisor(
            ObjectProvider<Throttlers> throttlers,
            ObjectProvider<RateLimitedOperations> operations,
            ConfigurableListableBeanFactory beans) {
        return new RateLimitedAdvisor(
                SingletonSupplier.of(throttlers::getObject),
                SingletonSupplier.of(operations::getObject),
                () -> beans.getBean(AopConfigUtils.AUTO_PROXY_CREATOR_BEAN_NAME, ProxyConfig.class)
                        .isProxyTargetClass());
    }

    @Bean
    @Lazy(false)
    AnnotatedPolicyReport rateLimitAnnotatedPolicyReport(
            RateLimitProperties properties, Throttlers throttlers, RateLimitedOperations operations) {
        return new AnnotatedPolicyReport(properties, throttlers, operations, new RateLimitedCheck(operations));
    }

    /** Registered here, so that it is there without AspectJ, and whatever {@code spring.aop.auto} says. */
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
}
