package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.RateLimitsEndpoint.BucketLocator;
import io.ratelimit.actuate.RateLimitsProblems.SpringMvcProblems;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.audit.AuditEventRepository;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.servlet.HandlerExceptionResolver;

/** Auto-configuration for the actuator endpoint {@code ratelimits}. */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
            "io.ratelimit.annotation.RateLimitAnnotationAutoConfiguration",
            "io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration"
        })
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass({WebEndpoint.class, ConditionalOnAvailableEndpoint.class, DispatcherServletRegistrationBean.class})
public final class RateLimitActuateAutoConfiguration {

    /**
     * Configuration where the endpoint is exposed. The endpoint's own mapping is part of the index of {@link Endpoints}, so
     * both that index and the request policies are looked up with a request.
     */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnAvailableEndpoint(RateLimitsEndpoint.class)
    @EnableConfigurationProperties(RateLimitsEndpoint.Properties.class)
    @Import(MeasuringConfiguration.class)
    static class EndpointConfiguration {

        @Bean
        static OperationInvokerAdvisor rateLimitsProblems() {
            return new RateLimitsProblems();
        }

        @Bean
        static HandlerExceptionResolver rateLimitRejectedChangeResolver(ObjectProvider<PathMappedEndpoints> endpoints) {
            return new SpringMvcProblems(endpoints);
        }

        /** @param beans the beans that are optional, or looked up with a request */
        @Bean
        @ConditionalOnMissingBean
        RateLimitsEndpoint rateLimitsEndpoint(
                Throttlers throttlers,
                LimitChanges changes,
                ConfiguredPolicies policies,
                DeniedKeys deniedKeys,
                RateLimitsEndpoint.Properties endpointProperties,
                ApplicationEventPublisher publisher,
                BeanFactory beans) {
            RateLimitedOperations operations =
                    beans.getBeanProvider(RateLimitedOperations.class).getIfAvailable();
            ObjectProvider<AuditEventRepository> audit = beans.getBeanProvider(AuditEventRepository.class);
            DemandListener demand = beans.getBeanProvider(DemandListener.class).getIfAvailable();
            return new RateLimitsEndpoint(
                    throttlers,
                    changes,
                    new BucketLocator(policies, operations, beans.getBeanProvider(Endpoints.class)),
                    new DescriptorFactory(
                            throttlers,
                            changes,
                            deniedKeys,
                            policies,
                            beans.getBeanProvider(RequestPolicies.class),
                            operations,
                            beans.getBeanProvider(Backend.class).getIfAvailable()),
                    demand == null ? null : new DemandReader(demand, policies),
                    endpointProperties::showsKeys,
                    event -> publish(event, audit, publisher));
        }

        /** Publishes an event only if it is kept. */
        private static void publish(
                AuditEvent event, ObjectProvider<AuditEventRepository> kept, ApplicationEventPublisher publisher) {
            if (kept.stream().findAny().isPresent()) {
                publisher.publishEvent(new AuditApplicationEvent(event));
            }
        }
    }
}
