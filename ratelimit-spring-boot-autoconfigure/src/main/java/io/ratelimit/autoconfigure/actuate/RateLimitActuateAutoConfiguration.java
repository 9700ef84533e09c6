package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.DeniedKeys;
import io.ratelimit.actuate.PolicyViews;
import io.ratelimit.actuate.RateLimitsEndpoint;
import io.ratelimit.actuate.RateLimitsProblems;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.BackendKind;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.annotation.RateLimitAnnotationAutoConfiguration;
import io.ratelimit.autoconfigure.web.servlet.RateLimitWebServletAutoConfiguration;
import io.ratelimit.key.FailureListener;
import io.ratelimit.web.servlet.Endpoints;
import io.ratelimit.web.servlet.RequestPolicies;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** Auto-configuration for the actuator endpoint {@code ratelimits}. */
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

    /** Where it is exposed. Its mapping is one that the endpoints are read from, so it asks for them when it is asked. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnAvailableEndpoint(RateLimitsEndpoint.class)
    @EnableConfigurationProperties(RateLimitsEndpointProperties.class)
    @Import(DeniedKeysConfiguration.class)
    static class OfEndpoint {

        @Bean
        RateLimitsProblems rateLimitsProblems() {
            return new RateLimitsProblems();
        }

        @Bean
        ForbiddenChanges rateLimitForbiddenChanges(ObjectProvider<PathMappedEndpoints> endpoints) {
            return new ForbiddenChanges(endpoints::getObject);
        }

        @Bean
        ConfiguredBuckets rateLimitBucketFinder(
                RateLimitProperties properties,
                Throttlers throttlers,
                ObjectProvider<RateLimitedOperations> operations,
                ObjectProvider<Endpoints> endpoints,
                FailureListener failures) {
            return new ConfiguredBuckets(
                    properties,
                    throttlers,
                    operations.getIfAvailable(),
                    () -> endpoints.getObject().names(),
                    failures);
        }

        @Bean
        @ConditionalOnMissingBean
        RateLimitsEndpoint rateLimitsEndpoint(
                RateLimitProperties properties,
                Throttlers throttlers,
                DeniedKeys denied,
                ConfiguredBuckets buckets,
                ObjectProvider<RequestPolicies> requests,
                ObjectProvider<RateLimitedOperations> operations,
                ObjectProvider<Backend> backend,
                RateLimitsEndpointProperties endpoint) {
            PolicyViews views = new PolicyViews(
                    throttlers,
                    denied,
                    new ConfiguredScopes(
                            properties, requests::getObject, operations.getIfAvailable(), buckets::overrides),
                    backend.getIfAvailable(),
                    policy -> properties.backendOf(policy) == BackendKind.REDIS);
            return new RateLimitsEndpoint(throttlers, buckets, views, endpoint.showValues(), endpoint.roles());
        }
    }
}
