package io.ratelimit.autoconfigure.redis;

import io.lettuce.core.RedisClient;
import io.ratelimit.Backend;
import io.ratelimit.BucketStore;
import io.ratelimit.Throttler;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.BackendKind;
import io.ratelimit.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimit.autoconfigure.RateLimitConfigurationException;
import io.ratelimit.autoconfigure.RateLimitEnabledCondition;
import io.ratelimit.autoconfigure.RateLimitProperties;
import io.ratelimit.redis.FailoverBucketStore;
import io.ratelimit.redis.RedisBuckets;
import io.ratelimit.redis.RequestDeadline;
import io.ratelimit.redis.RoutingBucketStore;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Auto-configuration for policies that have their buckets in Redis. */
@AutoConfiguration(
        before = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration")
@Conditional({RateLimitEnabledCondition.class, OnRedisCondition.class})
@EnableConfigurationProperties(RateLimitProperties.class)
@Lazy(false)
public final class RateLimitRedisAutoConfiguration {

    private static final String SPRING_DATA = "org.springframework.data.redis.connection.RedisConnectionFactory";
    private static final String LETTUCE = "io.lettuce.core.RedisClient";
    private static final String IN_MEMORY =
            ", or keep limits in the memory of each instance: 'ratelimit.backend: local',"
                    + " and no 'backend: redis' at a policy.";

    /** Buckets in Redis, beside those in memory. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({LettuceConnectionFactory.class, RedisClient.class})
    @ConditionalOnMissingBean(BucketStore.class)
    @Lazy(false)
    static class OnRedis {

        @Bean
        RequestDeadline rateLimitRequestDeadline(RateLimitProperties properties, TimeSource time) {
            return new RequestDeadline(time, properties.redis().timeout());
        }

        @Bean
        RedisBuckets rateLimitRedisBuckets(
                ObjectProvider<RedisConnectionFactory> factories,
                RateLimitProperties properties,
                RequestDeadline deadline,
                Environment environment) {
            return new RedisBucketsReader(properties.redis(), environment).read(factories, deadline);
        }

        @Bean
        FailoverBucketStore rateLimitRedisStore(
                RedisBuckets buckets, RateLimitProperties properties, TimeSource time, RequestDeadline deadline) {
            return new FailoverBucketStore(
                    buckets.store(),
                    BucketStore.local(time),
                    properties.redis().localShare(),
                    properties::failureRuleOf,
                    time,
                    deadline);
        }

        @Bean
        @Primary
        RoutingBucketStore bucketStore(FailoverBucketStore redis, RateLimitProperties properties, TimeSource time) {
            return new RoutingBucketStore(
                    BucketStore.local(time), redis, policy -> properties.backendOf(policy) == BackendKind.REDIS);
        }

        @Bean
        Backend rateLimitBackend(FailoverBucketStore redis) {
            return redis.backend();
        }

        @Bean
        @Lazy(false)
        RedisStart rateLimitRedisStart(
                RedisBuckets buckets,
                FailoverBucketStore redis,
                ObjectProvider<Throttlers> throttlers,
                RateLimitProperties properties) {
            return new RedisStart(
                    buckets,
                    redis,
                    () -> throttlers.getObject().all().stream()
                            .map(Throttler::policy)
                            .filter(policy -> properties.backendOf(policy) == BackendKind.REDIS)
                            .toList(),
                    properties.asksRedis());
        }

        /** The calls of one request share one deadline. */
        @Configuration(proxyBeanMethods = false)
        @ConditionalOnClass({Filter.class, FilterRegistrationBean.class})
        @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
        static class OfRequests {

            @Bean
            FilterRegistrationBean<RequestDeadlineFilter> rateLimitRequestDeadlineFilter(RequestDeadline deadline) {
                FilterRegistrationBean<RequestDeadlineFilter> registration =
                        new FilterRegistrationBean<>(new RequestDeadlineFilter(deadline));
                registration.setName("rateLimitRequestDeadlineFilter");
                registration.setOrder(Ordered.HIGHEST_PRECEDENCE);
                registration.setDispatcherTypes(DispatcherType.REQUEST);
                registration.setAsyncSupported(true);
                return registration;
            }
        }
    }

    /** Without it there is no connection. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingClass(SPRING_DATA)
    @ConditionalOnMissingBean(BucketStore.class)
    static class WithoutSpringData {

        @Bean
        BucketStore bucketStore() {
            throw new RateLimitConfigurationException(
                    "Limits are to be kept in Redis ('backend: redis'), but 'spring-boot-data-redis' is not on the class"
                            + " path.",
                    "Add 'spring-boot-starter-data-redis'" + IN_MEMORY,
                    "ratelimit.backend");
        }
    }

    /** Jedis blocks a thread for each call, whatever the deadline. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(name = SPRING_DATA)
    @ConditionalOnMissingClass(LETTUCE)
    @ConditionalOnMissingBean(BucketStore.class)
    static class WithoutLettuce {

        @Bean
        BucketStore bucketStore() {
            throw new RateLimitConfigurationException(
                    "Limits are to be kept in Redis ('backend: redis'), which needs Lettuce, but 'lettuce-core' is not on"
                            + " the class path. Jedis can't be used.",
                    "Add 'io.lettuce:lettuce-core', which 'spring-boot-starter-data-redis' brings" + IN_MEMORY,
                    "ratelimit.backend");
        }
    }
}
