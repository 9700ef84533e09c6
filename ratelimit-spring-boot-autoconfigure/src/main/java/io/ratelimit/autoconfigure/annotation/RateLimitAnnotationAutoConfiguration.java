package io.ratelimit.autoconfigure.annotation;

import io.ratelimit.BucketStore;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedAdvisor;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.ConfiguredPolicies;
import io.ratelimit.autoconfigure.PolicyReport;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.key.RequestFacts.Current;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.aop.framework.ProxyConfig;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.EnvironmentAware;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.util.function.SingletonSupplier;

/** Auto-configuration for limits on the calls of methods with {@code @RateLimited}. */
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@ConditionalOnBean(RateLimitProperties.class)
@Import(RateLimitAnnotationAutoConfiguration.ProxyCreator.class)
public final class RateLimitAnnotationAutoConfiguration {

    @Bean
    @Lazy
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

    /** Reports on annotated methods where the report of a servlet application doesn't. */
    @Bean
    @Lazy(false)
    @ConditionalOnMissingBean(name = "rateLimitStartupReport")
    SmartInitializingSingleton rateLimitAnnotationReport(
            RateLimitProperties properties,
            BucketStore store,
            Throttlers throttlers,
            RateLimitedOperations operations) {
        Log log = LogFactory.getLog(AnnotatedPolicyReport.class);
        return new AnnotatedPolicyReport(new PolicyReport(properties, store, log), throttlers, operations)::run;
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
}
