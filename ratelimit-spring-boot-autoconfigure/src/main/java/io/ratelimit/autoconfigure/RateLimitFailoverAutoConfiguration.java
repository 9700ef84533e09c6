package io.ratelimit.autoconfigure;

import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.Shares;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.policy.ConfiguredPolicies;
import io.ratelimit.policy.PolicyConfiguration;
import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitEnabledCondition;
import io.ratelimit.policy.RateLimitProperties;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.RoutingBucketStore;
import io.ratelimit.remote.inflight.RegisterStore;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import java.io.IOException;
import java.util.EnumSet;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.Ordered;
import org.springframework.util.ClassUtils;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/**
 * Auto-configuration for bucket stores that may fail: Redis, a database, and the application's own {@link BucketStore}. All have a
 * deadline, a circuit breaker, {@code on-backend-failure} and a {@link Backend}.
 */
@AutoConfiguration(
        before = RateLimitAutoConfiguration.class,
        after = {RateLimitJdbcAutoConfiguration.class, RateLimitRedisAutoConfiguration.class})
@Conditional(RateLimitEnabledCondition.class)
@ConditionalOnBean(BucketStore.class)
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitFailoverAutoConfiguration {

    /** The name of the bean that registers the deadline of requests. */
    public static final String DEADLINE_FILTER = "rateLimitDeadlineFilter";

    /** Whether a thread can be bound to a request of a servlet. */
    private static final boolean IN_SERVLETS = Stream.of(
                    "jakarta.servlet.Filter", "org.springframework.web.context.request.ServletRequestAttributes")
            .allMatch(type -> ClassUtils.isPresent(type, RateLimitFailoverAutoConfiguration.class.getClassLoader()));

    @Bean
    Deadline rateLimitDeadline(ConfiguredPolicies policies, TimeSource time) {
        return IN_SERVLETS
                ? new Deadline(time, policies.sharedBackend().longestWait(), DeadlineFilter::bound)
                : new Deadline(time, policies.sharedBackend().longestWait());
    }

    /** The application's own bucket store. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(FailoverBucketStore.class)
    static class CustomStore {

        private static final Class<?> IN_MEMORY =
                BucketStore.local(TimeSource.system()).getClass();

        /** Returns whether a store is a bean of the application. */
        static boolean isCustom(BucketStore store) {
            return !(store instanceof RoutingBucketStore || IN_MEMORY.isInstance(store));
        }

        /** Returns the name of the application's own store, as the log and the health show it. */
        static String nameOf(BucketStore store) {
            return ClassUtils.getShortName(ClassUtils.getUserClass(store));
        }

        @Bean(name = PolicyConfiguration.OWN_STORE, defaultCandidate = false, destroyMethod = "awaitSettlements")
        FailoverBucketStore rateLimitCustomStore(
                BucketStore store, ConfiguredPolicies policies, TimeSource time, Deadline deadline) {
            policies.all()
                    .forEach(policy -> rejectWithoutEffect(policy, policies.inFlightProperty(policy.name()), store));
            return SharedBackend.failover(nameOf(store), store, policies, time, deadline);
        }

        /**
         * Rejects a limit that the store can't keep.
         *
         * @param inFlight the property that limits the requests in flight; null for none
         */
        private static void rejectWithoutEffect(ThrottlePolicy policy, @Nullable String inFlight, BucketStore store) {
            String property = RateLimitProperties.property(policy.name());
            if (!policy.lease().isZero() && !(store instanceof LeasingBucketStore)) {
                throw withoutEffect(property + ".lease", store, "leases no tokens", "implement LeasingBucketStore");
            }
            Shares shares = policy.shares();
            if (shares != null && !store.keepsShares(policy)) {
                String name = shares.each() == null ? ".shares" : ".guaranteed";
                throw withoutEffect(property + name, store, "keeps no shares", "override keepsShares");
            }
            if (inFlight != null && isCustom(store) && !(store instanceof RegisterStore)) {
                throw withoutEffect(inFlight, store, "counts no requests in flight", "implement RegisterStore");
            }
        }

        private static RateLimitConfigurationException withoutEffect(
                String property, BucketStore store, String lack, String action) {
            return new RateLimitConfigurationException(
                    "'" + property + "' is set, but the application's own " + nameOf(store) + " " + lack + ".",
                    "Remove '" + property + "', or " + action + ".",
                    property);
        }

        @Bean
        @ConditionalOnMissingBean
        Backend rateLimitBackend(@Qualifier(PolicyConfiguration.OWN_STORE) FailoverBucketStore store) {
            return store.backend();
        }
    }

    /** The calls of one request share one deadline. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({Filter.class, FilterRegistrationBean.class})
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class Requests {

        @Bean
        FilterRegistrationBean<DeadlineFilter> rateLimitDeadlineFilter(Deadline deadline) {
            FilterRegistrationBean<DeadlineFilter> registration =
                    new FilterRegistrationBean<>(new DeadlineFilter(deadline));
            registration.setName(DEADLINE_FILTER);
            registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
            registration.setDispatcherTypes(EnumSet.complementOf(EnumSet.of(DispatcherType.INCLUDE)));
            registration.setAsyncSupported(true);
            return registration;
        }
    }

    /** Opens and closes the request of the deadline. Each dispatch continues with the time that the earlier ones left. */
    record DeadlineFilter(Deadline deadline) implements Filter {

        private static final String ATTRIBUTE = DeadlineFilter.class.getName();

        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            Deadline.Request time = find(request);
            if (time == null) {
                time = new Deadline.Request();
                request.setAttribute(ATTRIBUTE, time);
            }
            boolean outermost = deadline.open(time);
            try {
                chain.doFilter(request, response);
            } finally {
                if (outermost) {
                    deadline.close();
                }
            }
        }

        private static Deadline.@Nullable Request find(ServletRequest request) {
            return request.getAttribute(ATTRIBUTE) instanceof Deadline.Request time ? time : null;
        }

        /** Returns the time of the request that Spring has bound to this thread; null if the request is over. */
        static Deadline.@Nullable Request bound() {
            try {
                return RequestContextHolder.getRequestAttributes() instanceof ServletRequestAttributes attributes
                        ? find(attributes.getRequest())
                        : null;
            } catch (IllegalStateException requestIsOver) {
                return null;
            }
        }
    }
}
