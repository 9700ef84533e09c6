package io.ratelimit.autoconfigure;

import io.ratelimit.BucketStore;
import io.ratelimit.ChangeBoard;
import io.ratelimit.SystemTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.RateLimitFailoverAutoConfiguration.CustomStore;
import io.ratelimit.change.LimitChanges;
import io.ratelimit.key.FailureListener;
import io.ratelimit.policy.BackendProperties.BackendKind;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.PolicyConfiguration;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitEnabledCondition;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.policy.RateLimitProperties.AppliesTo;
import io.ratelimit.remote.FailoverBucketStore;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnNotWebApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportRuntimeHints;
import org.springframework.context.annotation.Lazy;

/** Auto-configuration for the throttlers of the policies below {@code ratelimit}. */
@AutoConfiguration
@Conditional(RateLimitEnabledCondition.class)
@Import(PolicyConfiguration.class)
@ImportRuntimeHints(RateLimitRuntimeHints.class)
@Lazy(false)
public final class RateLimitAutoConfiguration {

    private static final Log logger = LogFactory.getLog(RateLimitAutoConfiguration.class);

    @Bean
    @ConditionalOnMissingBean
    TimeSource rateLimitTimeSource() {
        return new SystemTimeSource();
    }

    @Bean
    @ConditionalOnMissingBean
    BucketStore rateLimitBucketStore(ConfiguredPolicies policies, TimeSource time) {
        requireLocal(policies, BackendKind.REDIS, "Redis");
        requireLocal(policies, BackendKind.JDBC, "Jdbc");
        return BucketStore.local(time);
    }

    private static void requireLocal(ConfiguredPolicies policies, BackendKind kind, String name) {
        if (policies.uses(kind)) {
            String backend = "'backend: " + kind.text() + "'";
            String configuration = "'RateLimit" + name + "AutoConfiguration'";
            throw new RateLimitConfigurationException(
                    "Limits need " + kind.place() + " (" + backend + "), but " + configuration
                            + " is missing: instances would share nothing.",
                    "Don't exclude " + configuration + ", or set 'ratelimit.backend: local'. If the"
                            + " application is processed ahead of time, set " + backend + " for the build too.",
                    "ratelimit.backend");
        }
    }

    @Bean
    @ConditionalOnMissingBean
    FailureListener rateLimitFailureListener(TimeSource time) {
        return PolicyLog.failures(time);
    }

    @Bean
    @ConditionalOnMissingBean
    Throttlers rateLimitThrottlers(
            ConfiguredPolicies policies,
            BucketStore store,
            @Qualifier(PolicyConfiguration.OWN_STORE) ObjectProvider<FailoverBucketStore> customStore,
            TimeSource time,
            ObjectProvider<ThrottleListener> listeners) {
        return new Throttlers(
                policies.all(),
                CustomStore.isCustom(store) ? customStore.getObject() : store,
                time,
                ThrottleListener.of(Stream.concat(listeners.orderedStream(), Stream.of(new PolicyLog(time)))
                        .toList()));
    }

    /** Checks the changes of throttlers of the application too. */
    @Bean
    @Lazy(false)
    LimitChanges rateLimitChanges(
            Throttlers throttlers, ConfiguredPolicies policies, TimeSource time, ObjectProvider<ChangeBoard> board) {
        policies.checkChanges(throttlers);
        return new LimitChanges(throttlers, time, board.getIfAvailable());
    }

    /** Logs that no request is limited in an application without web. Its code may use the throttlers. */
    @Configuration(proxyBeanMethods = false)
    @Lazy(false)
    @ConditionalOnNotWebApplication
    static class WithoutWeb {

        WithoutWeb(RateLimitProperties properties) {
            Advice advice = new Advice();
            properties.policies().forEach((name, policy) -> {
                if (policy.appliesTo() == AppliesTo.REQUESTS) {
                    advice.inform(
                            name,
                            "Throttle policy '<policy>' limits no requests, because this is not a web application; code can"
                                    + " use the bean Throttlers");
                }
            });
            advice.log(logger);
        }
    }

    /** Stops the start of a reactive application, because the filter is a servlet filter. */
    @Configuration(proxyBeanMethods = false)
    @Lazy(false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class Reactive {

        Reactive() {
            throw new RateLimitConfigurationException(
                    "ratelimit limits the requests of servlet applications, but this application is reactive (WebFlux):"
                            + " none of its requests would be limited.",
                    "Build on 'spring-boot-starter-webmvc', remove 'ratelimit-spring-boot-starter', or set"
                            + " 'ratelimit.enabled: false'.");
        }
    }

    /** Stops the start of a servlet application without Spring MVC, whose endpoints the policies need. */
    @Configuration(proxyBeanMethods = false)
    @Lazy(false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnMissingClass("org.springframework.boot.webmvc.autoconfigure.DispatcherServletRegistrationBean")
    static class ServletWithoutMvc {

        ServletWithoutMvc() {
            throw new RateLimitConfigurationException(
                    "ratelimit needs Spring MVC to limit the requests of a servlet application, but 'spring-boot-webmvc'"
                            + " is not on the class path: no request would be limited.",
                    "Add 'spring-boot-starter-webmvc', or set 'ratelimit.enabled: false'.");
        }
    }
}
