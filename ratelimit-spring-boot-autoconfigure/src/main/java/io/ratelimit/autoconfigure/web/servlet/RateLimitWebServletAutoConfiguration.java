package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.autoconfigure.KeyBeans;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.autoconfigure.annotation.RateLimitAnnotationAutoConfiguration;
import io.ratelimit.key.CurrentRequest;
import io.ratelimit.key.FailureListener;
import io.ratelimit.web.servlet.BoundRequest;
import io.ratelimit.web.servlet.ClientAddresses;
import io.ratelimit.web.servlet.Endpoints;
import io.ratelimit.web.servlet.LateRejectionFilter;
import io.ratelimit.web.servlet.LateRejections;
import io.ratelimit.web.servlet.Phase;
import io.ratelimit.web.servlet.ProblemRejectionHandler;
import io.ratelimit.web.servlet.RateLimitFilter;
import io.ratelimit.web.servlet.RateLimitHeaders;
import io.ratelimit.web.servlet.RefusedCallResolver;
import io.ratelimit.web.servlet.RefusedCalls;
import io.ratelimit.web.servlet.Rejection;
import io.ratelimit.web.servlet.RejectionCors;
import io.ratelimit.web.servlet.RejectionDelay;
import io.ratelimit.web.servlet.RejectionHandler;
import io.ratelimit.web.servlet.RequestPolicies;
import jakarta.servlet.DispatcherType;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.util.pattern.PathPatternParser;

/** Auto-configuration for the filters that hold requests to the policies of {@code ratelimit.*}. */
@AutoConfiguration(after = {RateLimitAutoConfiguration.class, RateLimitAnnotationAutoConfiguration.class})
@ConditionalOnBean(RateLimitProperties.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass(DispatcherServletRegistrationBean.class)
public final class RateLimitWebServletAutoConfiguration {

    /** As {@code SecurityFilterProperties} has it, which is there only with Spring Security. */
    private static final int DEFAULT_SECURITY_FILTER_ORDER = -100;

    private static final Log logger = LogFactory.getLog(RateLimitWebServletAutoConfiguration.class);

    private final RateLimitProperties properties;
    private final Environment environment;

    /** What most beans need is asked for once: each time that would be looked for among all beans. */
    RateLimitWebServletAutoConfiguration(RateLimitProperties properties, Environment environment) {
        this.properties = properties;
        this.environment = environment;
    }

    @Bean
    @ConditionalOnMissingBean
    RejectionHandler rateLimitRejectionHandler() {
        Map<String, Integer> statuses = new HashMap<>();
        properties.policies().forEach((name, policy) -> statuses.put(name, policy.status()));
        return new ProblemRejectionHandler(headers(), statuses);
    }

    @Bean
    @ConditionalOnMissingBean
    LateRejections rateLimitLateRejections(TimeSource time) {
        Map<String, RejectionDelay> delays = new HashMap<>();
        properties.policies().forEach((name, policy) -> delays.put(name, policy.rejectionDelay()));
        return new LateRejections(delays, time);
    }

    @Bean
    @ConditionalOnMissingBean
    Rejection rateLimitRejection(
            Throttlers throttlers,
            RejectionHandler handler,
            LateRejections late,
            ObjectProvider<Endpoints> endpoints,
            ObjectProvider<HandlerMapping> mappings,
            @Qualifier("corsConfigurationSource") ObjectProvider<CorsConfigurationSource> cors) {
        return new Rejection(
                throttlers,
                new RejectionCors(
                        SingletonSupplier.of(endpoints::getObject),
                        SingletonSupplier.of(() -> mappings.orderedStream().toList()),
                        SingletonSupplier.of(() -> cors.getIfAvailable(() -> request -> null))),
                handler,
                late);
    }

    /** Calls of annotated methods are refused as requests are. */
    @Bean
    RefusedCallResolver rateLimitRefusedCallResolver(Rejection rejection) {
        return new RefusedCallResolver(new RefusedCalls(headers(), rejection));
    }

    @Bean
    @ConditionalOnMissingBean
    CurrentRequest rateLimitCurrentRequest(ObjectProvider<Endpoints> endpoints, ClientAddresses addresses) {
        return new BoundRequest(SingletonSupplier.of(endpoints::getObject), addresses);
    }

    /** The endpoints are read when all handler mappings are there, and before the first request. */
    @Bean
    @Lazy(false)
    @ConditionalOnMissingBean
    Endpoints rateLimitEndpoints(
            ObjectProvider<DispatcherServletRegistrationBean> servlet, ObjectProvider<HandlerMapping> mappings) {
        DispatcherServletRegistrationBean registration = servlet.getIfUnique();
        if (registration == null) {
            logger.warn("There is not exactly one DispatcherServlet: in keys with 'endpoint' all requests share one");
        }
        return new Endpoints(
                registration == null ? "" : registration.getServletName(),
                registration == null ? "" : registration.getPrefix(),
                mappings.orderedStream().toList());
    }

    @Bean
    @ConditionalOnMissingBean
    ClientAddresses rateLimitClientAddresses() {
        return new ClientAddresses(properties.clientIp().toClientIp());
    }

    @Bean
    @Lazy(false)
    @ConditionalOnMissingBean
    RequestPolicies rateLimitRequestPolicies(
            Throttlers throttlers,
            @Qualifier("mvcPatternParser") ObjectProvider<PathPatternParser> parser,
            Endpoints endpoints,
            ClientAddresses addresses,
            ListableBeanFactory beans,
            FailureListener failures) {
        RequestPolicyReader reader = new RequestPolicyReader(
                properties,
                throttlers,
                environment,
                parser.getIfAvailable(() -> PathPatternParser.defaultInstance),
                new KeyBeans(beans),
                failures);
        return new RequestPolicies(reader.read(), endpoints, addresses, throttlers.listener());
    }

    @Bean
    @Lazy(false)
    PolicyReport rateLimitPolicyReport(RequestPolicies policies, Throttlers throttlers, Endpoints endpoints) {
        return new PolicyReport(policies, throttlers, endpoints, properties);
    }

    @Bean
    @Lazy(false)
    WaitingReport rateLimitWaitingReport(
            Throttlers throttlers, ObjectProvider<RateLimitedOperations> operations, ListableBeanFactory beans) {
        RateLimitedOperations calls = operations.getIfAvailable();
        Predicate<String> letsCallsWait = calls == null ? policy -> false : calls::letsWait;
        return new WaitingReport(throttlers, letsCallsWait, ContainerThreads.of(beans, environment));
    }

    @Bean
    @Lazy(false)
    ContextPathReport rateLimitContextPathReport(RequestPolicies policies, Endpoints endpoints) {
        return new ContextPathReport(policies, endpoints, environment);
    }

    @Bean
    @Lazy(false)
    OverrideReport rateLimitOverrideReport(Endpoints endpoints) {
        return new OverrideReport(properties, endpoints);
    }

    @Bean
    @Lazy(false)
    ProxyReport rateLimitProxyReport(RequestPolicies policies) {
        return new ProxyReport(policies, properties.clientIp(), environment);
    }

    @Bean
    @ConditionalOnMissingBean(name = "rateLimitFilterBeforeAuthentication")
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterBeforeAuthentication(
            Throttlers throttlers, ObjectProvider<RequestPolicies> policies, Rejection rejection) {
        RateLimitFilter filter = filter(Phase.BEFORE_AUTHENTICATION, throttlers, policies, rejection);
        return registration(filter, "rateLimitFilterBeforeAuthentication", securityFilterOrder() - 1);
    }

    @Bean
    @ConditionalOnMissingBean(name = "rateLimitFilterAfterAuthentication")
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterAfterAuthentication(
            Throttlers throttlers, ObjectProvider<RequestPolicies> policies, Rejection rejection) {
        RateLimitFilter filter = filter(Phase.AFTER_AUTHENTICATION, throttlers, policies, rejection);
        return registration(filter, "rateLimitFilterAfterAuthentication", orderAfter());
    }

    /** Where no policy has a delay there is nothing for it to do. */
    @Bean
    @ConditionalOnMissingBean(name = "rateLimitLateRejectionFilter")
    FilterRegistrationBean<LateRejectionFilter> rateLimitLateRejectionFilter(Rejection rejection, LateRejections late) {
        FilterRegistrationBean<LateRejectionFilter> registration =
                new FilterRegistrationBean<>(new LateRejectionFilter(rejection));
        registration.setName("rateLimitLateRejectionFilter");
        registration.setOrder(securityFilterOrder() - 1);
        registration.setDispatcherTypes(DispatcherType.ASYNC);
        registration.setAsyncSupported(true);
        registration.setEnabled(!late.isEmpty());
        return registration;
    }

    /** Policies are asked for with the first request: they need the endpoints, which filters come before. */
    private RateLimitFilter filter(
            Phase phase, Throttlers throttlers, ObjectProvider<RequestPolicies> policies, Rejection rejection) {
        return new RateLimitFilter(phase, throttlers, SingletonSupplier.of(policies::getObject), headers(), rejection);
    }

    /** Only for requests as they come in: whatever is dispatched again has paid. */
    private static FilterRegistrationBean<RateLimitFilter> registration(
            RateLimitFilter filter, String name, int order) {
        FilterRegistrationBean<RateLimitFilter> registration = new FilterRegistrationBean<>(filter);
        registration.setName(name);
        registration.setOrder(order);
        registration.setDispatcherTypes(DispatcherType.REQUEST);
        registration.setAsyncSupported(true);
        return registration;
    }

    private int orderAfter() {
        int before = securityFilterOrder() - 1;
        Integer written = properties.filter().afterAuthenticationOrder();
        if (written != null && written <= before) {
            throw new InvalidConfigurationPropertyValueException(
                    "ratelimit.filter.after-authentication-order",
                    written,
                    "It must be greater than the order of the filter before authentication, " + before + ", but was "
                            + written + ": what is asked after authentication would be asked first.");
        }
        return written == null ? before + 2 : written;
    }

    private int securityFilterOrder() {
        String property = "spring.security.filter.order";
        int order = environment.getProperty(property, Integer.class, DEFAULT_SECURITY_FILTER_ORDER);
        if (order == Integer.MIN_VALUE || order == Integer.MAX_VALUE) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    order,
                    "The limits stand right before and right behind Spring Security, so its order must leave room for"
                            + " them: say " + (order < 0 ? order + 1 : order - 1) + ".");
        }
        return order;
    }

    private RateLimitHeaders headers() {
        return RateLimitHeaders.valueOf(properties.headers().name());
    }
}
