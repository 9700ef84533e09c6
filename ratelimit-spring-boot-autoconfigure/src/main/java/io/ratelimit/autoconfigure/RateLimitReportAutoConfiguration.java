package io.ratelimit.autoconfigure;

import io.ratelimit.Throttlers;
import io.ratelimit.annotation.RateLimitedOperations;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.web.servlet.RequestPolicies;
import io.ratelimit.web.servlet.endpoint.Endpoints;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;

/** Auto-configuration for the start-up report about all limits. */
@AutoConfiguration(
        afterName = {
            "io.ratelimit.annotation.RateLimitAnnotationAutoConfiguration",
            "io.ratelimit.web.servlet.RateLimitWebServletAutoConfiguration"
        })
@ConditionalOnBean(name = ConfiguredPolicies.BEAN_NAME)
@Lazy(false)
public final class RateLimitReportAutoConfiguration {

    /** The report of a servlet application, with its annotated methods. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnBean(name = "rateLimitRequestPolicies")
    @Lazy(false)
    static class Servlet {

        @Bean
        ServletStartupReport rateLimitStartupReport(
                RateLimitProperties properties,
                ConfiguredPolicies policies,
                Throttlers throttlers,
                ObjectProvider<RateLimitedOperations> operations,
                RequestPolicies requests,
                Endpoints endpoints,
                ApplicationContext context) {
            return new ServletStartupReport(
                    properties, policies, throttlers, operations.getIfAvailable(), requests, endpoints, context);
        }
    }

    /** The report of another application, which is about annotated methods alone. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnBean(name = "rateLimitedOperations")
    @ConditionalOnMissingBean(name = "rateLimitRequestPolicies")
    @Lazy(false)
    static class Annotated {

        @Bean
        StartupReport rateLimitAnnotationReport(
                RateLimitProperties properties,
                ConfiguredPolicies policies,
                Throttlers throttlers,
                RateLimitedOperations operations,
                Environment environment) {
            return new StartupReport(properties, policies, throttlers, operations, environment);
        }
    }
}
