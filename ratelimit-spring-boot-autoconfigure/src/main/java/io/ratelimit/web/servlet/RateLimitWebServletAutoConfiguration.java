package io.ratelimit.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.key.RequestFacts;
import io.ratelimit.key.RequestFacts.Current;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import io.ratelimit.web.servlet.rejection.PolicyResponses;
import io.ratelimit.web.servlet.rejection.ProblemRejectionHandler;
import io.ratelimit.web.servlet.rejection.RateLimitHeaders;
import io.ratelimit.web.servlet.rejection.RejectionHandler;
import io.ratelimit.web.servlet.rejection.Rejections;
import io.swagger.v3.oas.models.OpenAPI;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.function.Function;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springdoc.core.customizers.GlobalOpenApiCustomizer;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.security.authentication.event.AbstractAuthenticationFailureEvent;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextHolderStrategy;
import org.springframework.security.web.header.HeaderWriterFilter;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.ViewResolver;
import org.springframework.web.util.pattern.PathPatternParser;

/** Auto-configuration for the filters that enforce policies on requests of a servlet application. */
@AutoConfiguration(
        afterName = "io.ratelimit.autoconfigure.RateLimitAutoConfiguration",
        beforeName = "io.ratelimit.annotation.RateLimitAnnotationAutoConfiguration")
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass(DispatcherServletRegistrationBean.class)
public final class RateLimitWebServletAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitWebServletAutoConfiguration.class);

    private final RateLimitProperties properties;
    private final Environment environment;
    private final PolicyResponses responses;
    private final FilterRegistrations registrations;

    /** Injects the beans that most methods need once, because each look-up by type searches all beans. */
    RateLimitWebServletAutoConfiguration(RateLimitProperties properties, ApplicationContext application) {
        this.properties = properties;
        this.environment = application.getEnvironment();
        this.responses = responses(properties);
        this.registrations = new FilterRegistrations(properties, application);
    }

    private static PolicyResponses responses(RateLimitProperties properties) {
        PolicyResponses responses = new PolicyResponses(headers(properties.headers()));
        properties.policies().forEach((name, policy) -> {
            RateLimitHeaders own = policy.headers() == null ? null : headers(policy.headers());
            responses.add(name, policy.status(), policy.rejectionDelay(), own);
        });
        return responses;
    }

    @Bean
    @ConditionalOnMissingBean
    RejectionHandler rateLimitRejectionHandler(
            ObjectProvider<ErrorViewResolver> pages, ObjectProvider<ViewResolver> views) {
        return new ProblemRejectionHandler(
                responses, pages.orderedStream().toList(), views.orderedStream().toList());
    }

    private static RateLimitHeaders headers(Enum<?> written) {
        return RateLimitHeaders.valueOf(written.name());
    }

    @Bean
    static ServerLimits.Late rateLimitServerLimits(BeanFactory beans) {
        return new ServerLimits.Late(beans);
    }

    @Bean
    @Lazy(false)
    Rejections rateLimitRejections(
            Throttlers throttlers,
            RejectionHandler handler,
            TimeSource time,
            Endpoints endpoints,
            @Qualifier("corsConfigurationSource") ObjectProvider<CorsConfigurationSource> cors) {
        return Rejections.of(
                handler, responses, time, throttlers.listener(), endpoints, cors.getIfAvailable(() -> request -> null));
    }

    /** Writes all delayed rejections when the application stops. */
    @Bean
    SmartLifecycle rateLimitRejectionLifecycle(Rejections rejections) {
        return rejections.lifecycle();
    }

    /** Answers rejected calls of annotated methods as rejected requests. */
    @Bean
    static RejectedCallResolver rateLimitRejectedCallResolver(ServerLimits.Late limits) {
        return new RejectedCallResolver(limits);
    }

    @Bean
    Current rateLimitCurrentRequest(ServerLimits.Late limits) {
        return new BoundRequest(limits);
    }

    /** Reads the endpoints after all handler mappings are created, and before the first request. */
    @Bean
    @Lazy(false)
    @ConditionalOnMissingBean
    Endpoints rateLimitEndpoints(
            ObjectProvider<DispatcherServletRegistrationBean> servlet,
            ObjectProvider<HandlerMapping> mappings,
            BeanFactory beans) {
        DispatcherServletRegistrationBean registration = servlet.getIfUnique();
        if (registration == null && !beans.containsBean("mockMvc")) { // MockMvc's servlet has no name either
            logger.warn("There is not exactly one DispatcherServlet: all requests have the same endpoint in keys with"
                    + " 'endpoint'");
        }
        return new Endpoints(
                registration == null ? "" : registration.getServletName(),
                registration == null ? "" : registration.getPrefix(),
                mappings.orderedStream().toList());
    }

    @Bean
    @Lazy(false)
    RequestPolicies rateLimitRequestPolicies(
            ConfiguredPolicies configured,
            Throttlers throttlers,
            @Qualifier("mvcPatternParser") ObjectProvider<PathPatternParser> parser,
            Endpoints endpoints,
            ListableBeanFactory beans) {
        RequestPolicyReader reader = new RequestPolicyReader(
                configured,
                properties.excludePaths(),
                throttlers,
                environment,
                endpoints.parser(parser.getIfAvailable(() -> PathPatternParser.defaultInstance)),
                Phase.authenticates(properties, beans));
        return new RequestPolicies(
                reader.read(), endpoints, properties.clientIp().toClientIp(), throttlers.listener());
    }

    @Bean
    @ConditionalOnMissingBean(name = FilterRegistrations.BEFORE_AUTHENTICATION)
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterBeforeAuthentication(ServerLimits.Late limits) {
        return registrations.beforeAuthentication(limits);
    }

    @Bean
    @ConditionalOnMissingBean(name = FilterRegistrations.AFTER_AUTHENTICATION)
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterAfterAuthentication(ServerLimits.Late limits) {
        return registrations.afterAuthentication(limits);
    }

    @Bean
    @ConditionalOnMissingBean(name = FilterRegistrations.DISPATCHES)
    FilterRegistrationBean<FilterRegistrations.DispatchFilter> rateLimitDispatchFilter(ServerLimits.Late limits) {
        return registrations.dispatches(limits);
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({GlobalOpenApiCustomizer.class, OpenAPI.class})
    static class SpringdocConfiguration {

        @Bean
        RejectedResponses rateLimitRejectedResponses(
                RateLimitProperties properties,
                ObjectProvider<RequestPolicies> requests,
                ObjectProvider<RateLimitedOperations> calls,
                RejectionHandler handler) {
            return new RejectedResponses(properties, requests, calls, handler);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HttpSecurity.class, HeaderWriterFilter.class})
    static class SecurityConfiguration {

        @Bean
        AuthenticationResults rateLimitAuthenticationResults(
                RateLimitProperties properties, ObjectProvider<SecurityContextHolderStrategy> contexts) {
            boolean required = properties.policies().values().stream()
                    .anyMatch(policy -> policy.refundOn().contains("authenticated"));
            return new AuthenticationResults(required, contexts);
        }
    }

    /** The request that Spring has bound to the current thread. Threads of asynchronous work usually have none. */
    record BoundRequest(ServerLimits.Late limits) implements Current {

        @Override
        public @Nullable RequestFacts facts() {
            return find(request -> RequestLedger.of(request, limits).facts(request));
        }

        @Override
        public void noteRejectedCall(RuntimeException rejected) {
            find(request -> {
                RequestLedger.of(request, limits).rejectedCall(rejected);
                return null;
            });
        }

        /** Applies a function to the request; returns null if there is none, or if the thread has outlived it. */
        static <T> @Nullable T find(Function<HttpServletRequest, @Nullable T> function) {
            try {
                return RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes bound
                        ? function.apply(bound.getRequest())
                        : null;
            } catch (IllegalStateException requestIsOver) {
                return null;
            }
        }
    }

    /**
     * Makes Spring Security report whether it authenticated a request, for policies with {@code refund-on: authenticated}.
     * Spring Security applies the customizer to each {@link HttpSecurity} before the application's own configuration.
     *
     * <p>The listener records failed authentications of the request that is bound to the thread, such as in a controller that
     * calls the authentication manager.
     *
     * @param required whether any policy refunds authenticated requests
     */
    record AuthenticationResults(boolean required, ObjectProvider<SecurityContextHolderStrategy> contexts)
            implements Customizer<HttpSecurity>, ApplicationListener<AbstractAuthenticationFailureEvent> {

        @Override
        public void customize(HttpSecurity http) {
            if (required) {
                SecurityContextHolderStrategy strategy =
                        contexts.getIfAvailable(SecurityContextHolder::getContextHolderStrategy);
                http.addFilterBefore(new ResultFilter(strategy), HeaderWriterFilter.class);
            }
        }

        @Override
        public void onApplicationEvent(AbstractAuthenticationFailureEvent event) {
            BoundRequest.find(request -> {
                RequestLedger ledger = RequestLedger.find(request);
                if (ledger != null) {
                    ledger.course().noteFailedAuthentication();
                }
                return null;
            });
        }

        /**
         * Records whether a request leaves the filter chain of Spring Security authenticated. This includes a request that the
         * chain answers itself: a form login answers with a redirect, and a user without the required right gets 403.
         *
         * <p>The filter stands inside the chain, behind the filter that clears the security context at the end. Each
         * authentication filter of Spring Security clears the context when credentials are wrong, whatever the response is.
         *
         * <p>An exception that leaves the chain proves nothing. The {@link RateLimitFilter} after authentication records a
         * request that the chain has passed on.
         */
        private record ResultFilter(SecurityContextHolderStrategy contexts) implements Filter {

            @Override
            public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                    throws IOException, ServletException {
                chain.doFilter(request, response);
                DispatcherType dispatch = request.getDispatcherType();
                RequestLedger ledger =
                        dispatch == DispatcherType.ERROR ? null : RequestLedger.find((HttpServletRequest) request);
                if (ledger != null
                        && ledger.cameBy(dispatch)
                        && ledger.refundsAuthenticated()
                        && UserPrincipal.SpringSecurity.accepts(
                                contexts.getContext().getAuthentication())) {
                    ledger.course().noteAuthenticated();
                }
            }
        }
    }
}
