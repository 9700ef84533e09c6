package io.ratelimit.autoconfigure.redis;

import org.springframework.beans.BeansException;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** The address of the application's Redis. */
final class RedisLocation {

    private RedisLocation() {}

    /**
     * Returns the configuration of a connection factory.
     *
     * @throws IllegalArgumentException if it is a fixed list of a master and its replicas
     */
    static RedisConfiguration of(LettuceConnectionFactory application) {
        RedisConfiguration configuration = configuration(application);
        if (RedisConfiguration.isStaticMasterReplicaConfiguration(configuration)) {
            throw new IllegalArgumentException("a fixed list doesn't show which of its nodes is the master");
        }
        return configuration;
    }

    /** Returns whether it is a fixed list, which doesn't show the master after a failover. */
    static boolean isFixedList(LettuceConnectionFactory application) {
        return RedisConfiguration.isStaticMasterReplicaConfiguration(configuration(application));
    }

    /**
     * Reads a field of the factory. By its methods a factory with a list of a master and replicas looks like one for
     * localhost, and so does one whose single server was passed as any configuration. The methods are used only if a later
     * version renames the field.
     */
    private static RedisConfiguration configuration(LettuceConnectionFactory application) {
        try {
            return new DirectFieldAccessor(application).getPropertyValue("configuration")
                            instanceof RedisConfiguration configuration
                    ? configuration
                    : byMethods(application);
        } catch (BeansException renamed) {
            return byMethods(application);
        }
    }

    private static RedisConfiguration byMethods(LettuceConnectionFactory application) {
        if (application.getClusterConfiguration() != null) {
            return application.getClusterConfiguration();
        }
        if (application.getSentinelConfiguration() != null) {
            return application.getSentinelConfiguration();
        }
        RedisConfiguration socket = application.getSocketConfiguration();
        return socket != null ? socket : application.getStandaloneConfiguration();
    }
}
