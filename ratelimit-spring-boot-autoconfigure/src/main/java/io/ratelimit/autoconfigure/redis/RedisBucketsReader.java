package io.ratelimit.autoconfigure.redis;

import io.ratelimit.autoconfigure.RateLimitConfigurationException;
import io.ratelimit.autoconfigure.RedisProperties;
import io.ratelimit.autoconfigure.RedisProperties.Strategy;
import io.ratelimit.redis.RedisBuckets;
import io.ratelimit.redis.RedisConnections;
import io.ratelimit.redis.RequestDeadline;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Reads how and where buckets are kept in Redis. */
final class RedisBucketsReader {

    private static final Log logger = LogFactory.getLog(RedisBucketsReader.class);

    private final RedisProperties properties;
    private final Environment environment;

    RedisBucketsReader(RedisProperties properties, Environment environment) {
        this.properties = properties;
        this.environment = environment;
    }

    RedisBuckets read(ObjectProvider<RedisConnectionFactory> factories, RequestDeadline deadline) {
        LettuceConnectionFactory application = lettuce(factories.getIfUnique());
        refuseFixedList(application);
        String secret = properties.keySecret() == null ? "" : properties.keySecret();
        return properties.strategy() == Strategy.TRANSACTION
                ? byTransaction(application, secret, deadline)
                : RedisBuckets.byScript(application, prefix(), secret, deadline);
    }

    private static void refuseFixedList(LettuceConnectionFactory application) {
        if (RedisConnections.isFixedList(application)) {
            throw new RateLimitConfigurationException(
                    "Limits are to be kept in Redis ('backend: redis'), which is configured as a fixed list of a master and"
                            + " its replicas: after a failover nothing would tell which of them may be written to.",
                    "Say 'spring.data.redis.host' (an address that leads to the master), or configure Sentinel or a"
                            + " cluster, instead of 'spring.data.redis.masterreplica.nodes'.",
                    "spring.data.redis.masterreplica.nodes");
        }
    }

    private RedisBuckets byTransaction(LettuceConnectionFactory application, String secret, RequestDeadline deadline) {
        if (application.isClusterAware()) {
            throw new RateLimitConfigurationException(
                    "A transaction can't span the nodes of a Redis cluster.",
                    "Say 'ratelimit.redis.strategy: script', or configure a single server or Sentinel.",
                    "ratelimit.redis.strategy");
        }
        return RedisBuckets.byTransaction(application, prefix(), secret, deadline);
    }

    private static LettuceConnectionFactory lettuce(@Nullable RedisConnectionFactory factory) {
        if (factory instanceof LettuceConnectionFactory lettuce) {
            return lettuce;
        }
        if (factory == null) {
            throw new RateLimitConfigurationException(
                    "Limits are to be kept in Redis ('backend: redis'), but there is not exactly one"
                            + " RedisConnectionFactory to tell where it is.",
                    "Add 'spring-boot-starter-data-redis' and say 'spring.data.redis.host', or declare one bean of the type"
                            + " LettuceConnectionFactory as primary.",
                    "ratelimit.backend");
        }
        throw new RateLimitConfigurationException(
                "Limits are to be kept in Redis ('backend: redis'), which needs Lettuce, but the RedisConnectionFactory is"
                        + " a " + factory.getClass().getSimpleName() + ".",
                "Say 'spring.data.redis.client-type: lettuce', or remove Jedis from the class path.",
                "ratelimit.backend");
    }

    private String prefix() {
        if (properties.keyPrefix() != null) {
            return properties.keyPrefix();
        }
        String application = environment.getProperty("spring.application.name", "");
        if (application.isBlank()) {
            logger.warn("The application has no name, so its keys in Redis begin with 'ratelimit': another application"
                    + " without one that has a policy of the same name would share its limits. Say"
                    + " 'spring.application.name' or 'ratelimit.redis.key-prefix'");
            return "ratelimit";
        }
        return "ratelimit:" + application;
    }
}
