package io.ratelimit.autoconfigure;

import io.ratelimit.redis.RedisClientFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Creates the clients of Redis, which only this package can, for benchmarks. */
public final class MeasuredClients {

    private MeasuredClients() {}

    /** Returns clients that connect as the application does. */
    public static RedisClientFactory create(LettuceConnectionFactory application) {
        return new LettuceClients(application);
    }
}
