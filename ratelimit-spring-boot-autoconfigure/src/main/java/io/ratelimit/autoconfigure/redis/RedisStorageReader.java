package io.ratelimit.autoconfigure.redis;

import io.ratelimit.policy.RateLimitConfigurationException;
import io.ratelimit.policy.RateLimitProperties.Redis;
import io.ratelimit.policy.RateLimitProperties.Redis.Strategy;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Reads the storage in Redis from the properties. */
final class RedisStorageReader {

    private static final Log logger = LogFactory.getLog(RedisStorageReader.class);

    private final Redis properties;
    private final Environment environment;

    RedisStorageReader(Redis properties, Environment environment) {
        this.properties = properties;
        this.environment = environment;
    }

    RedisStorage read(ObjectProvider<RedisConnectionFactory> factories, Deadline deadline) {
        LettuceConnectionFactory application = lettuce(factories.getIfUnique());
        rejectFixedList(application);
        String secret = properties.keySecret() == null ? "" : properties.keySecret();
        return properties.strategy() == Strategy.TRANSACTION
                ? withTransactions(application, secret, deadline)
                : RedisStorage.withScripts(new LettuceClients(application), prefix(), secret, deadline);
    }

    private static void rejectFixedList(LettuceConnectionFactory application) {
        if (RedisLocation.isFixedList(application)) {
            throw new RateLimitConfigurationException(
                    "'backend: redis' is set, and Redis is configured as a fixed list of a master and its replicas: the list"
                            + " doesn't show which of them is the master after a failover.",
                    "Set 'spring.data.redis.host' (an address that leads to the master), or configure Sentinel or a"
                            + " cluster, instead of 'spring.data.redis.masterreplica.nodes'.",
                    "spring.data.redis.masterreplica.nodes");
        }
    }

    private RedisStorage withTransactions(LettuceConnectionFactory application, String secret, Deadline deadline) {
        if (application.isClusterAware()) {
            throw new RateLimitConfigurationException(
                    "A transaction can't span the nodes of a Redis cluster.",
                    "Set 'ratelimit.redis.strategy: script', or configure a single server or Sentinel.",
                    "ratelimit.redis.strategy");
        }
        return RedisStorage.withTransactions(new LettuceClients(application), prefix(), secret, deadline);
    }

    private static LettuceConnectionFactory lettuce(@Nullable RedisConnectionFactory factory) {
        if (factory instanceof LettuceConnectionFactory lettuce) {
            return lettuce;
        }
        if (factory == null) {
            throw new RateLimitConfigurationException(
                    "'backend: redis' is set, but there is not exactly one RedisConnectionFactory with the address of"
                            + " Redis.",
                    "Add 'spring-boot-starter-data-redis' and set 'spring.data.redis.host', or declare one bean of the type"
                            + " LettuceConnectionFactory as primary.",
                    "ratelimit.backend");
        }
        throw new RateLimitConfigurationException(
                "'backend: redis' is set and needs Lettuce, but the RedisConnectionFactory is a " + ""
                        + factory.getClass().getSimpleName() + ".",
                "Set 'spring.data.redis.client-type: lettuce', or remove Jedis from the class path.",
                "ratelimit.backend");
    }

    private String prefix() {
        if (properties.keyPrefix() != null) {
            return properties.keyPrefix();
        }
        String application = environment.getProperty("spring.application.name", "");
        if (application.isBlank()) {
            logger.warn(
                    "The application has no name, so its keys in Redis begin with 'ratelimit': it would share limits"
                            + " with another application without a name that has a policy of the same name. Set"
                            + " 'spring.application.name' or 'ratelimit.redis.key-prefix'");
            return "ratelimit";
        }
        return "ratelimit:" + application;
    }
}
