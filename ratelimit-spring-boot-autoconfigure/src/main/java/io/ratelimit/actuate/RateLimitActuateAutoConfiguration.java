package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.PolicyThrottler;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.RateLimitDashboard.DashboardFiles;
import io.ratelimit.actuate.RateLimitDashboard.EndpointPaths;
import io.ratelimit.actuate.RateLimitDashboard.Identity;
import io.ratelimit.actuate.RateLimitsEndpoint.BucketLocator;
import io.ratelimit.actuate.RateLimitsProblems.SpringMvcProblems;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.audit.AuditEventRepository;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.autoconfigure.endpoint.expose.EndpointExposure;
import org.springframework.boot.actuate.endpoint.EndpointAccessResolver;
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
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.web.servlet.HandlerExceptionResolver;

/**
 * Auto-configuration for the actuator: the endpoint {@code ratelimits}, the dashboard, and the health indicator of the
 * backend that holds the buckets.
 */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
            "io.ratelimit.annotation.RateLimitAnnotationAutoConfiguration",
            "io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration"
        })
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
final class RateLimitActuateAutoConfiguration {

    /**
     * Configuration where the endpoint is exposed. The endpoint's own mapping is part of the index of {@link Endpoints}, so
     * both that index and the request policies are looked up with a request.
     */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass({
        WebEndpoint.class,
        ConditionalOnAvailableEndpoint.class,
        DispatcherServletRegistrationBean.class
    })
    @ConditionalOnAvailableEndpoint(RateLimitsEndpoint.class)
    @EnableConfigurationProperties(RateLimitsEndpoint.Properties.class)
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
            ObjectProvider<RateLimitedOperations> operations = beans.getBeanProvider(RateLimitedOperations.class);
            ObjectProvider<AuditEventRepository> audit = beans.getBeanProvider(AuditEventRepository.class);
            DemandListener demand = beans.getBeanProvider(DemandListener.class).getIfAvailable();
            return new RateLimitsEndpoint(
                    throttlers,
                    changes,
                    new BucketLocator(policies, operations.getIfAvailable(), beans.getBeanProvider(Endpoints.class)),
                    new DescriptorFactory(
                            throttlers,
                            changes,
                            deniedKeys,
                            policies,
                            beans.getBeanProvider(RequestPolicies.class),
                            operations.getIfAvailable(),
                            beans.getBeanProvider(Backend.class).getIfAvailable()),
                    demand == null
                            ? null
                            : new DemandReader(demand, policies, RateLimitedOperations.oneBucket(operations)),
                    endpointProperties::showsKeys,
                    event -> publish(event, audit, publisher));
        }

        private static void publish(
                AuditEvent event, ObjectProvider<AuditEventRepository> kept, ApplicationEventPublisher publisher) {
            if (kept.stream().findAny().isPresent()) {
                publisher.publishEvent(new AuditApplicationEvent(event));
            }
        }

        /** Configuration of the listeners whose measurements endpoints show, which the dashboard imports too. */
        @Configuration(proxyBeanMethods = false)
        static class MeasuringConfiguration {

            @Bean
            DeniedKeys rateLimitDeniedKeys(TimeSource time) {
                return new DeniedKeys(time);
            }

            /** Configuration of the measurement of demand. Without an endpoint, the configuration of the log measures if it is enabled. */
            @Configuration(proxyBeanMethods = false)
            @ConditionalOnBooleanProperty(name = "ratelimit.demand.enabled", matchIfMissing = true)
            static class OfDemand {

                @Bean(initMethod = "start")
                DemandListener rateLimitDemandListener(TimeSource time) {
                    return new DemandListener(time);
                }
            }
        }
    }

    /** Configuration where the dashboard is exposed. Nothing is counted for it elsewhere. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass({
        WebEndpoint.class,
        ConditionalOnAvailableEndpoint.class,
        DispatcherServletRegistrationBean.class
    })
    @ConditionalOnAvailableEndpoint(endpoint = RateLimitDashboard.class, exposure = EndpointExposure.WEB)
    @EnableConfigurationProperties(RateLimitsEndpoint.Properties.class)
    @Import(EndpointConfiguration.MeasuringConfiguration.class)
    static class DashboardConfiguration {

        @Bean(initMethod = "start")
        DecisionHistory rateLimitDecisionHistory(TimeSource time) {
            return new DecisionHistory(time);
        }

        /** @param beans the beans that are optional, or looked up with a request */
        @Bean
        RateLimitDashboard rateLimitDashboard(
                Throttlers throttlers,
                LimitChanges changes,
                ConfiguredPolicies policies,
                DecisionHistory history,
                DeniedKeys deniedKeys,
                RateLimitsEndpoint.Properties endpointProperties,
                BeanFactory beans) {
            Predicate<ThrottlePolicy> oneBucket =
                    RateLimitedOperations.oneBucket(beans.getBeanProvider(RateLimitedOperations.class));
            DashboardReader reader = new DashboardReader(
                    Identity.of(beans.getBean(Environment.class)),
                    throttlers,
                    changes,
                    history,
                    deniedKeys,
                    beans.getBeanProvider(Backend.class).getIfAvailable(),
                    DashboardReader.Configured.of(policies, oneBucket));
            DemandListener demand = beans.getBeanProvider(DemandListener.class).getIfAvailable();
            return new RateLimitDashboard(
                    reader,
                    demand == null ? null : () -> DemandData.of(throttlers, demand, policies, oneBucket),
                    new EndpointPaths(
                            beans.getBeanProvider(PathMappedEndpoints.class),
                            beans.getBean(EndpointAccessResolver.class),
                            changes.isShared()),
                    endpointProperties::showsKeys,
                    new DashboardFiles());
        }
    }

    /** Configuration of the health indicator, also of applications without a web server. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
    @ConditionalOnEnabledHealthIndicator("ratelimit")
    static class HealthConfiguration {

        @Bean
        @ConditionalOnMissingBean(name = "ratelimitHealthIndicator")
        RateLimitHealthIndicator ratelimitHealthIndicator(
                Throttlers throttlers, ObjectProvider<Backend> backend, ConfiguredPolicies policies) {
            return new RateLimitHealthIndicator(
                    throttlers, backend.getIfAvailable(), policy -> policies.failureRule(policy) == FailureRule.DENY);
        }
    }

    /**
     * A health indicator for the backend of the limits. It is down only if requests are denied because the backend fails. Where
     * a fallback decides instead, it stays up: a load balancer must not take all instances out of rotation then. It also stays
     * up if the backend is misconfigured for some calls and the call of the check succeeds: one broken key would otherwise
     * take all instances out.
     *
     * <p>Each check probes the backend. An outage or a misconfiguration shows without traffic, and so does its end: an instance
     * out of rotation gets no requests that would show it.
     */
    static final class RateLimitHealthIndicator extends AbstractHealthIndicator {

        private final Throttlers throttlers;
        private final @Nullable Backend backend;
        private final Predicate<ThrottlePolicy> denies;

        /** @param denies whether a policy denies calls while the backend fails */
        RateLimitHealthIndicator(Throttlers throttlers, @Nullable Backend backend, Predicate<ThrottlePolicy> denies) {
            super("The health of the rate limits could not be determined");
            this.throttlers = throttlers;
            this.backend = backend;
            this.denies = denies;
        }

        @Override
        protected void doHealthCheck(Health.Builder builder) {
            builder.up();
            List<ThrottlePolicy> remote = throttlers.all().stream()
                    .filter(throttler -> throttler.policy().mode() != Mode.OFF && throttler.backend() != null)
                    .map(PolicyThrottler::policy)
                    .toList();
            if (backend != null && !remote.isEmpty()) {
                boolean answers = backend.probe();
                report(builder, backend.name(), answers, backend.state(), remote);
            }
        }

        private void report(
                Health.Builder builder,
                String name,
                boolean answers,
                Backend.State state,
                List<ThrottlePolicy> remote) {
            boolean fails =
                    state.condition() == Condition.DOWN || state.condition() == Condition.MISCONFIGURED && !answers;
            List<String> denying = fails
                    ? remote.stream()
                            .filter(policy -> policy.mode() == Mode.ENFORCE && denies.test(policy))
                            .map(ThrottlePolicy::name)
                            .toList()
                    : List.of();
            builder.withDetail("backend", name)
                    .withDetail("condition", state.condition())
                    .withDetail("since", state.since());
            if (state.cause() != null) {
                builder.withDetail("cause", state.cause());
            }
            if (!denying.isEmpty()) {
                builder.down().withDetail("refusing", denying);
            }
        }
    }
}
