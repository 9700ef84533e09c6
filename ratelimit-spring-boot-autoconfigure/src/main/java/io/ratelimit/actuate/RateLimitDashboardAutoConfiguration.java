package io.ratelimit.actuate;

import io.ratelimit.Backend;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.RateLimitDashboard.DashboardFiles;
import io.ratelimit.actuate.RateLimitDashboard.EndpointPaths;
import io.ratelimit.actuate.RateLimitDashboard.Identity;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.demand.DemandListener;
import io.ratelimit.policy.ConfiguredPolicies;
import java.util.UUID;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.autoconfigure.endpoint.expose.EndpointExposure;
import org.springframework.boot.actuate.endpoint.EndpointAccessResolver;
import org.springframework.boot.actuate.endpoint.web.PathMappedEndpoints;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/** Auto-configuration for the dashboard where it is exposed. Nothing is counted for it elsewhere. */
@AutoConfiguration(afterName = "io.ratelimit.autoconfigure.RateLimitAutoConfiguration")
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass({WebEndpoint.class, ConditionalOnAvailableEndpoint.class, DispatcherServletRegistrationBean.class})
@ConditionalOnAvailableEndpoint(endpoint = RateLimitDashboard.class, exposure = EndpointExposure.WEB)
@EnableConfigurationProperties(RateLimitsEndpoint.Properties.class)
@Import(MeasuringConfiguration.class)
public final class RateLimitDashboardAutoConfiguration {

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
        DashboardReader reader = new DashboardReader(
                UUID.randomUUID().toString(),
                throttlers,
                changes,
                history,
                deniedKeys,
                beans.getBeanProvider(Backend.class).getIfAvailable(),
                DashboardReader.Configured.of(policies));
        DemandListener demand = beans.getBeanProvider(DemandListener.class).getIfAvailable();
        return new RateLimitDashboard(
                reader,
                demand == null ? null : () -> DemandData.of(throttlers, demand, policies),
                new EndpointPaths(
                        beans.getBeanProvider(PathMappedEndpoints.class),
                        beans.getBean(EndpointAccessResolver.class),
                        changes.isShared()),
                endpointProperties::showsKeys,
                Identity.of(beans.getBean(Environment.class)),
                new DashboardFiles());
    }
}
