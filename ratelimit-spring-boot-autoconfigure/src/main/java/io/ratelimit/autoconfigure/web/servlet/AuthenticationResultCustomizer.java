package io.ratelimit.autoconfigure.web.servlet;

import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.web.servlet.AuthenticationResultFilter;
import io.ratelimit.web.servlet.FailedAuthenticationListener;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ApplicationListener;
import org.springframework.security.authentication.event.AbstractAuthenticationFailureEvent;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextHolderStrategy;
import org.springframework.security.web.header.HeaderWriterFilter;

/**
 * Makes Spring Security report whether it authenticated a request, for policies with {@code refund-on: authenticated}.
 * Spring Security applies the customizer to each {@link HttpSecurity} before the application's own configuration.
 */
class AuthenticationResultCustomizer
        implements Customizer<HttpSecurity>, ApplicationListener<AbstractAuthenticationFailureEvent> {

    private static final String AUTHENTICATED = "authenticated";

    private final FailedAuthenticationListener failures = new FailedAuthenticationListener();
    private final ObjectProvider<SecurityContextHolderStrategy> strategy;
    private final boolean required;

    AuthenticationResultCustomizer(
            RateLimitProperties properties, ObjectProvider<SecurityContextHolderStrategy> strategy) {
        this.strategy = strategy;
        this.required = properties.policies().values().stream()
                .anyMatch(policy -> policy.refundOn().contains(AUTHENTICATED));
    }

    @Override
    public void customize(HttpSecurity http) {
        if (required) {
            http.addFilterBefore(
                    new AuthenticationResultFilter(
                            strategy.getIfAvailable(SecurityContextHolder::getContextHolderStrategy)),
                    HeaderWriterFilter.class);
        }
    }

    @Override
    public void onApplicationEvent(AbstractAuthenticationFailureEvent failure) {
        failures.onApplicationEvent(failure);
    }
}
