package io.ratelimit.web.servlet;

import io.ratelimit.Throttlers;
import io.ratelimit.policy.Phase;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.rejection.LimitHeaders;
import io.ratelimit.web.servlet.rejection.RateLimitHeaders;
import io.ratelimit.web.servlet.rejection.Rejections;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import java.util.HashMap;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.core.env.Environment;
import org.springframework.util.function.SingletonSupplier;

/**
 * Registers the filters, of the application's server and of a management server, at the same places in the chain.
 *
 * <p>The early filter stands where a rejection costs least: before {@code FormContentFilter} (-9900), which reads the whole
 * body of a PUT, PATCH or DELETE form into memory. It stands behind {@code HiddenHttpMethodFilter} (-10000), which may
 * change the method, and behind {@code ForwardedHeaderFilter}, which may change the address. Where
 * {@code spring.security.filter.order} is lower still, the early filter stands right before Spring Security.
 */
record FilterRegistrations(RateLimitProperties properties, Environment environment) {

    static final String BEFORE_AUTHENTICATION = "rateLimitFilterBeforeAuthentication";
    static final String AFTER_AUTHENTICATION = "rateLimitFilterAfterAuthentication";
    static final String DISPATCHES = "rateLimitDispatchFilter";

    private static final int BEFORE_FORM_CONTENT = -9950;

    /** The default of {@code SecurityFilterProperties}, a class that exists only with Spring Security. */
    private static final int DEFAULT_SECURITY_FILTER_ORDER = -100;

    FilterRegistrationBean<RateLimitFilter> beforeAuthentication(
            Throttlers throttlers, ObjectProvider<RequestPolicies> policies, Rejections rejections) {
        int order = Math.min(BEFORE_FORM_CONTENT, beforeSecurity());
        return registration(
                Phase.BEFORE_AUTHENTICATION, BEFORE_AUTHENTICATION, order, throttlers, policies, rejections);
    }

    FilterRegistrationBean<RateLimitFilter> afterAuthentication(
            Throttlers throttlers, ObjectProvider<RequestPolicies> policies, Rejections rejections) {
        return registration(
                Phase.AFTER_AUTHENTICATION, AFTER_AUTHENTICATION, orderAfter(), throttlers, policies, rejections);
    }

    FilterRegistrationBean<Filter> dispatches(Rejections rejections) {
        FilterRegistrationBean<Filter> registration =
                new FilterRegistrationBean<>(rejections.dispatchFilter(RateLimitFilter::dispatched));
        registration.setName(DISPATCHES);
        registration.setOrder(beforeSecurity());
        registration.setDispatcherTypes(DispatcherType.ASYNC, DispatcherType.FORWARD, DispatcherType.ERROR);
        registration.setAsyncSupported(true);
        return registration;
    }

    /** Returns the headers of each policy. */
    static LimitHeaders headers(RateLimitProperties properties) {
        Map<String, RateLimitHeaders> ofPolicies = new HashMap<>();
        properties.policies().forEach((name, policy) -> {
            if (policy.headers() != null) {
                ofPolicies.put(name, RateLimitHeaders.valueOf(policy.headers().name()));
            }
        });
        return new LimitHeaders(RateLimitHeaders.valueOf(properties.headers().name()), ofPolicies);
    }

    /**
     * Registers for requests as they come in, and for error dispatches: a request that the container answers itself enters
     * the application by its error dispatch only. The filter looks its policies up with the first request, since they need
     * the endpoints, which are created after filters.
     */
    private FilterRegistrationBean<RateLimitFilter> registration(
            Phase phase,
            String name,
            int order,
            Throttlers throttlers,
            ObjectProvider<RequestPolicies> policies,
            Rejections rejections) {
        FilterRegistrationBean<RateLimitFilter> registration = new FilterRegistrationBean<>(new RateLimitFilter(
                phase, throttlers, SingletonSupplier.of(policies::getObject), headers(properties), rejections));
        registration.setName(name);
        registration.setOrder(order);
        registration.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ERROR);
        registration.setAsyncSupported(true);
        return registration;
    }

    private int orderAfter() {
        int before = beforeSecurity();
        Integer written = properties.filter().afterAuthenticationOrder();
        if (written != null && written <= before) {
            throw new InvalidConfigurationPropertyValueException(
                    "ratelimit.filter.after-authentication-order",
                    written,
                    "It must be greater than " + before + ", the last order before Spring Security, but was " + written
                            + ": policies after authentication would run before it.");
        }
        return written == null ? before + 2 : written;
    }

    /** Returns the order right before Spring Security, or before its default place where it is missing. */
    private int beforeSecurity() {
        String property = "spring.security.filter.order";
        int order = environment.getProperty(property, Integer.class, DEFAULT_SECURITY_FILTER_ORDER);
        if (order == Integer.MIN_VALUE || order == Integer.MAX_VALUE) {
            throw new InvalidConfigurationPropertyValueException(
                    property,
                    order,
                    "The filters of the limits run right before and right after Spring Security, so its order must leave"
                            + " room for them: set it to " + (order < 0 ? order + 1 : order - 1) + ".");
        }
        return order - 1;
    }
}
