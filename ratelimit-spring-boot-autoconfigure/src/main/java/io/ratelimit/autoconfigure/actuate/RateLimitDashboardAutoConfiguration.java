package io.ratelimit.autoconfigure.actuate;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.actuate.DeniedKeys;
import io.ratelimit.actuate.dashboard.DashboardReader;
import io.ratelimit.actuate.dashboard.DecisionHistory;
import io.ratelimit.actuate.dashboard.RateLimitDashboard;
import io.ratelimit.autoconfigure.PolicyReport;
import io.ratelimit.autoconfigure.RateLimitProperties;
import org.springframework.beans.factory.ObjectProvider;
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

/** Auto-configuration for the dashboard where it is exposed. Nothing is counted for it elsewhere. */
@AutoConfiguration(after = RateLimitActuateAutoConfiguration.class)
@ConditionalOnBean(RateLimitProperties.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass({WebEndpoint.class, ConditionalOnAvailableEndpoint.class, DispatcherServletRegistrationBean.class})
@ConditionalOnAvailableEndpoint(endpoint = RateLimitDashboard.class, exposure = EndpointExposure.WEB)
@EnableConfigurationProperties(RateLimitsEndpointProperties.class)
@Import(DeniedKeysConfiguration.class)
public final class RateLimitDashboardAutoConfiguration {

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
        DashboardReader reader = new DashboardReader(
                throttlers, history, deniedKeys, backend.getIfAvailable(), PolicyReport.onBackend(properties, store));
        return new RateLimitDashboard(reader, endpoints::getObject, access, endpointProperties::showsKeys);
    }
}
