package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.DeniedKeys;
import io.ratelimit.actuate.RateLimitsEndpoint;
import io.ratelimit.actuate.dashboard.DecisionHistory;
import io.ratelimit.actuate.dashboard.RateLimitDashboard;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.ConfiguredPolicies;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.annotation.RateLimitAnnotationAutoConfiguration;
import io.ratelimit.autoconfigure.web.servlet.RateLimitWebServletAutoConfiguration;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.Set;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.audit.AuditEventRepository;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.autoconfigure.endpoint.expose.EndpointExposure;
import org.springframework.boot.actuate.endpoint.EndpointAccessResolver;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.Show;
import org.springframework.boot.actuate.endpoint.invoke.OperationInvokerAdvisor;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** Auto-configuration for the actuator endpoint {@code ratelimits} and the dashboard. */
@AutoConfiguration(
        after = {
            RateLimitAutoConfiguration.class,
            RateLimitAnnotationAutoConfiguration.class,
            RateLimitWebServletAutoConfiguration.class
        })
@ConditionalOnBean(RateLimitProperties.class)
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
    @Import(DeniedKeysConfiguration.class)
    static class EndpointConfiguration {

        @Bean
        OperationInvokerAdvisor rateLimitsProblems() {
            return RateLimitsEndpoint.problems();
        }

        @Bean
        ReadOnlyEndpointResolver rateLimitReadOnlyEndpointResolver(ObjectProvider<PathMappedEndpoints> endpoints) {
            return new ReadOnlyEndpointResolver(endpoints::getObject);
        }

        @Bean
        @ConditionalOnMissingBean
        RateLimitsEndpoint rateLimitsEndpoint(
                RateLimitProperties properties,
                RateLimitsEndpointProperties endpointProperties,
                ConfiguredPolicies policies,
                Throttlers throttlers,
                DeniedKeys deniedKeys,
                ObjectProvider<Endpoints> endpoints,
                ObjectProvider<RequestPolicies> requests,
                ObjectProvider<RateLimitedOperations> operations,
                ObjectProvider<Backend> backend,
                ObjectProvider<AuditEventRepository> audit,
                ApplicationEventPublisher events,
                BucketStore store) {
            BucketLocator buckets = new BucketLocator(properties, policies, operations.getIfAvailable(), () -> endpoints
                    .getObject()
                    .names());
            return new RateLimitsEndpoint(
                    throttlers,
                    buckets,
                    deniedKeys,
                    new PolicyScopes(
                            properties,
                            requests::getObject,
                            operations.getIfAvailable(),
                            properties.backendNames(store),
                            buckets::overrides),
                    backend.getIfAvailable(),
                    properties.onBackend(store),
                    endpointProperties::showsKeys,
                    event -> {
                        if (audit.stream().findAny().isPresent()) {
                            events.publishEvent(new AuditApplicationEvent(event));
                        }
                    });
        }
    }

    /** Configuration of the dashboard where it is exposed. Nothing is counted for it elsewhere. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnAvailableEndpoint(endpoint = RateLimitDashboard.class, exposure = EndpointExposure.WEB)
    @EnableConfigurationProperties(RateLimitsEndpointProperties.class)
    @Import(DeniedKeysConfiguration.class)
    static class DashboardConfiguration {

        @Bean(initMethod = "start")
        DecisionHistory rateLimitDecisionHistory(TimeSource time) {
            return new DecisionHistory(time);
        }

        @Bean
        RateLimitDashboard rateLimitDashboard(
                Throttlers throttlers,
                DecisionHistory history,
                DeniedKeys deniedKeys,
                RateLimitProperties properties,
                RateLimitsEndpointProperties endpointProperties,
                ObjectProvider<Backend> backend,
                BucketStore store,
                ObjectProvider<PathMappedEndpoints> endpoints,
                EndpointAccessResolver access) {
            return new RateLimitDashboard(
                    throttlers,
                    history,
                    deniedKeys,
                    backend.getIfAvailable(),
                    properties.onBackend(store),
                    endpoints::getObject,
                    access,
                    endpointProperties::showsKeys);
        }
    }

    /**
     * Configuration properties of the actuator endpoint ratelimits.
     *
     * @param showValues When to show the texts of keys, which may be names and addresses of users. Hashes are shown otherwise.
     * @param roles Roles of users that see the texts of keys when authorized. Without roles, each authenticated user sees them.
     */
    @ConfigurationProperties("management.endpoint.ratelimits")
    record RateLimitsEndpointProperties(
            @DefaultValue("never") Show showValues,
            @DefaultValue Set<String> roles) {

        boolean showsKeys(SecurityContext security) {
            return showValues.isShown(security, roles);
        }
    }
}
