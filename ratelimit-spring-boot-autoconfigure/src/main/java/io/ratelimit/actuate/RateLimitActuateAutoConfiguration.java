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
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.audit.AuditEventRepository;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.EndpointId;
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
import org.springframework.core.Ordered;
import org.springframework.http.HttpMethod;
import org.springframework.web.HttpRequestMethodNotSupportedException;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;

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
        ReadOnlyEndpointResolver rateLimitReadOnlyEndpointResolver(ObjectProvider<PathMappedEndpoints> endpoints) {
            return new ReadOnlyEndpointResolver(endpoints::getObject);
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

    /**
     * Answers a change that is sent to a read-only {@link RateLimitsEndpoint} with the reason. Such an endpoint has no operation
     * for changes, so the response would otherwise be a 405 without a reason.
     *
     * @param endpoints called with the first rejected change, since it needs all endpoints
     */
    record ReadOnlyEndpointResolver(Supplier<PathMappedEndpoints> endpoints)
            implements HandlerExceptionResolver, Ordered {

        private static final EndpointId LIMITS = EndpointId.of(RateLimitsEndpoint.ID);
        private static final byte[] PROBLEM = """
                {"title":"Method Not Allowed","status":405,"detail":"limits are read-only here; to change them, set \
                'management.endpoint.ratelimits.access: unrestricted'"}""".getBytes(StandardCharsets.UTF_8);

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }

        @Override
        public @Nullable ModelAndView resolveException(
                HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception failure) {
            if (!(failure instanceof HttpRequestMethodNotSupportedException notSupported)
                    || !isChangeOfReadOnlyLimit(request, notSupported)) {
                return null;
            }
            try {
                response.setStatus(HttpServletResponse.SC_METHOD_NOT_ALLOWED);
                response.setHeader("Allow", "GET");
                response.setContentType("application/problem+json");
                response.setContentLength(PROBLEM.length);
                response.getOutputStream().write(PROBLEM);
            } catch (IOException disconnected) {
                throw new UncheckedIOException(disconnected);
            }
            return new ModelAndView();
        }

        private boolean isChangeOfReadOnlyLimit(
                HttpServletRequest request, HttpRequestMethodNotSupportedException notSupported) {
            String path = endpoints.get().getPath(LIMITS);
            boolean change =
                    request.getMethod().equals("POST") || request.getMethod().equals("DELETE");
            return change
                    && path != null
                    && request.getRequestURI().contains(path + "/")
                    && notSupported.getSupportedHttpMethods() != null
                    && !notSupported.getSupportedHttpMethods().contains(HttpMethod.DELETE);
        }
    }
}
