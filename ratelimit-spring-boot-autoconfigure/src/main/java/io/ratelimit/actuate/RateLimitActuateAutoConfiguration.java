package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.function.Consumer;
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
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

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
    @EnableConfigurationProperties(RateLimitsEndpointProperties.class)
    @Import(MeasuringConfiguration.class)
    static class EndpointConfiguration {

        @Bean
        OperationInvokerAdvisor rateLimitsProblems() {
            return new RateLimitsProblems();
        }

        @Bean
        RejectedChangeResolver rateLimitRejectedChangeResolver(ObjectProvider<PathMappedEndpoints> endpoints) {
            return new RejectedChangeResolver(endpoints::getObject);
        }

        @Bean
        BucketLocator rateLimitBucketLocator(
                RateLimitProperties properties,
                ConfiguredPolicies policies,
                ObjectProvider<RateLimitedOperations> operations,
                ObjectProvider<Endpoints> endpoints) {
            return new BucketLocator(properties, policies, operations.getIfAvailable(), () -> endpoints
                    .getObject()
                    .names());
        }

        @Bean
        PolicyScopes rateLimitPolicyScopes(
                ConfiguredPolicies policies,
                ObjectProvider<RequestPolicies> requests,
                ObjectProvider<RateLimitedOperations> operations,
                Throttlers throttlers,
                BucketLocator buckets) {
            return new PolicyScopes(policies, requests::getObject, operations.getIfAvailable(), throttlers, buckets);
        }

        @Bean
        DescriptorFactory rateLimitDescriptors(
                Throttlers throttlers,
                LimitChanges changes,
                DeniedKeys deniedKeys,
                PolicyScopes scopes,
                ObjectProvider<Backend> backend) {
            return new DescriptorFactory(throttlers, changes, deniedKeys, scopes, backend.getIfAvailable());
        }

        @Bean
        @ConditionalOnBooleanProperty(name = "ratelimit.demand.enabled", matchIfMissing = true)
        DemandReader rateLimitDemandReader(DemandListener demand, ConfiguredPolicies policies) {
            return new DemandReader(demand, policies::refunds);
        }

        /** Publishes events only if they are kept. */
        @Bean
        AuditEvents rateLimitAuditEvents(
                ObjectProvider<AuditEventRepository> repositories, ApplicationEventPublisher publisher) {
            return event -> {
                if (repositories.stream().findAny().isPresent()) {
                    publisher.publishEvent(new AuditApplicationEvent(event));
                }
            };
        }

        @Bean
        @ConditionalOnMissingBean
        RateLimitsEndpoint rateLimitsEndpoint(
                Throttlers throttlers,
                LimitChanges changes,
                BucketLocator buckets,
                DescriptorFactory descriptors,
                ObjectProvider<DemandReader> demand,
                RateLimitsEndpointProperties properties,
                AuditEvents audit) {
            return new RateLimitsEndpoint(
                    throttlers, changes, buckets, descriptors, demand.getIfAvailable(), properties::showsKeys, audit);
        }
    }

    /** Receives the event of each change of a limit and each reset of a bucket. */
    interface AuditEvents extends Consumer<AuditEvent> {}
}
