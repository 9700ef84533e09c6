package io.ratelimit.redis;

import org.springframework.beans.BeansException;
import org.springframework.beans.DirectFieldAccessor;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Where the application's Redis is. */
final class RedisLocation {

    private RedisLocation() {}

    /**
     * What a connection factory was told.
     *
     * @throws IllegalArgumentException if it is a fixed list of a master and its replicas
     */
    static RedisConfiguration of(LettuceConnectionFactory application) {
        RedisConfiguration told = told(application);
        if (RedisConfiguration.isStaticMasterReplicaConfiguration(told)) {
            throw new IllegalArgumentException("nothing tells which node of a fixed list may be written to");
        }
        return told;
    }

    /** Whether it is a fixed list, of which nothing tells who is the master after a failover. */
    static boolean isFixedList(LettuceConnectionFactory application) {
        return RedisConfiguration.isStaticMasterReplicaConfiguration(told(application));
    }

    /**
     * By its methods a factory with a list of a master and replicas looks like one of localhost, and so does one whose
     * single server was passed as any configuration. Hence the look at what it keeps; the methods are for the day on which
     * it keeps it elsewhere.
     */
    private static RedisConfiguration told(LettuceConnectionFactory application) {
        try {
            return new DirectFieldAccessor(application).getPropertyValue("configuration")
                            instanceof RedisConfiguration kept
                    ? kept
                    : shown(application);
        } catch (BeansException elsewhere) {
            return shown(application);
        }
    }

    private static RedisConfiguration shown(LettuceConnectionFactory application) {
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
