package io.ratelimit.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.autoconfigure.RateLimitFailoverAutoConfiguration;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.rejection.RejectionHandler;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.Filter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextType;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.RegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.core.annotation.AnnotationAwareOrderComparator;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.HandlerMapping;

/**
 * Configuration for a management server with a port of its own, where Spring Security checks passwords too. The same
 * policies apply there, with the same buckets.
 *
 * <p>The management server has a context of its own, below the application's. Its filters and its endpoints are its own;
 * a bean here has the name of the application's bean that it replaces, and is preferred to one that the application defines
 * under another name.
 */
@ManagementContextConfiguration(value = ManagementContextType.CHILD, proxyBeanMethods = false)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnBean(RequestPolicies.class)
final class RateLimitManagementContextConfiguration {

    private final ApplicationContext parent;
    private final FilterRegistrations registrations;

    RateLimitManagementContextConfiguration(ApplicationContext context, RateLimitProperties properties) {
        this.parent = Objects.requireNonNull(context.getParent(), "a management context of its own must have a parent");
        this.registrations = new FilterRegistrations(properties, parent);
    }

    @Bean
    @Primary
    @Lazy(false)
    Endpoints rateLimitEndpoints(ListableBeanFactory beans) {
        Map<String, DispatcherServletRegistrationBean> servlets =
                beans.getBeansOfType(DispatcherServletRegistrationBean.class);
        if (servlets.size() != 1) {
            return new Endpoints("", "", List.of());
        }
        DispatcherServletRegistrationBean servlet = servlets.values().iterator().next();
        return new Endpoints(servlet.getServletName(), servlet.getPrefix(), mappings(beans));
    }

    /** Returns the mappings that Boot's composite, the only one that the servlet uses, tries in this order. */
    private static List<HandlerMapping> mappings(ListableBeanFactory beans) {
        Map<String, HandlerMapping> named = beans.getBeansOfType(HandlerMapping.class);
        named.remove(DispatcherServlet.HANDLER_MAPPING_BEAN_NAME);
        List<HandlerMapping> mappings = new ArrayList<>(named.values());
        AnnotationAwareOrderComparator.sort(mappings);
        return mappings;
    }

    @Bean
    @Primary
    @Lazy(false)
    RequestPolicies rateLimitRequestPolicies(
            Endpoints endpoints, RateLimitProperties properties, Throttlers throttlers) {
        List<RequestPolicy> policies = parent.getBean(RequestPolicies.class).all();
        return new RequestPolicies(policies, endpoints, properties.clientIp().toClientIp(), throttlers.listener());
    }

    @Bean
    @Primary
    ServerLimits.Late rateLimitServerLimits(BeanFactory beans) {
        return new ServerLimits.Late(beans);
    }

    @Bean
    @Primary
    @Lazy(false)
    Rejections rateLimitRejections(
            RejectionHandler handler,
            Endpoints endpoints,
            @Qualifier("corsConfigurationSource") ObjectProvider<CorsConfigurationSource> cors) {
        return parent.getBean(Rejections.class)
                .forServer(handler, endpoints, cors.getIfAvailable(() -> request -> null));
    }

    /** Registers the application's own filter: its calls of a remote store have a deadline on this server too. */
    @Bean
    @ConditionalOnBean(name = RateLimitFailoverAutoConfiguration.DEADLINE_FILTER)
    FilterRegistrationBean<?> rateLimitDeadlineFilter() {
        FilterRegistrationBean<?> own =
                parent.getBean(RateLimitFailoverAutoConfiguration.DEADLINE_FILTER, FilterRegistrationBean.class);
        FilterRegistrationBean<?> registration = new FilterRegistrationBean<>(Objects.requireNonNull(own.getFilter()));
        registration.setName(own.getFilterName());
        registration.setDispatcherTypes(own.determineDispatcherTypes());
        registration.setAsyncSupported(true);
        return asInParent(registration);
    }

    @Bean
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterBeforeAuthentication(ServerLimits.Late limits) {
        return asInParent(registrations.beforeAuthentication(limits));
    }

    @Bean
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterAfterAuthentication(ServerLimits.Late limits) {
        return asInParent(registrations.afterAuthentication(limits));
    }

    @Bean
    FilterRegistrationBean<FilterRegistrations.DispatchFilter> rateLimitDispatchFilter(ServerLimits.Late limits) {
        return asInParent(registrations.dispatches(limits));
    }

    /** Applies the order and the state that the application gave to its filter of the same name. */
    private <T extends Filter> FilterRegistrationBean<T> asInParent(FilterRegistrationBean<T> registration) {
        if (parent.getBean(registration.getFilterName()) instanceof RegistrationBean written) {
            registration.setOrder(written.getOrder());
            registration.setEnabled(written.isEnabled());
        }
        return registration;
    }
}
