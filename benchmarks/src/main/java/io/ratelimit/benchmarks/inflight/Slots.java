package io.ratelimit.benchmarks.inflight;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.resource.ClientResources;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.autoconfigure.MeasuredClients;
import io.ratelimit.redis.RedisStorage;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** The slots of one key that processes share on a Redis. Thread-safe. */
interface Slots {

    /** The ways to share them. */
    enum Way {
        /** As an application has them: its stores, deadline and circuit breaker included. */
        REGISTERS,
        /** A sorted set with an entry for each call, which expires after ten seconds, as gateways have it. */
        SET_WITH_EXPIRY;

        Slots create(int port, int limit) {
            return this == REGISTERS ? registers(port, limit) : setWithExpiry(port, limit);
        }
    }

    /** Takes a slot, and returns what releases it; null if there is none. */
    @Nullable
    Runnable take();

    private static Slots registers(int port, int limit) {
        LettuceConnectionFactory application = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", port),
                LettuceClientConfiguration.builder()
                        .clientResources(ClientResources.create())
                        .build());
        application.afterPropertiesSet();
        TimeSource time = TimeSource.system();
        Deadline deadline = new Deadline(time, Duration.ofMillis(500));
        RedisStorage storage =
                RedisStorage.withScripts(MeasuredClients.create(application), "ratelimit:load", "", deadline);
        storage.selfTest();
        FailoverBucketStore store = new FailoverBucketStore(
                "Redis", storage.store(), BucketStore.local(time), 1, policy -> FailureRule.DENY, deadline);
        ThrottlePolicy policy = ThrottlePolicy.of("load", BucketSpec.inFlight(limit));
        Throttlers throttlers = new Throttlers(List.of(policy), store, time, ThrottleListener.NONE);
        return () -> {
            Decision decision = throttlers.decide(List.of(Charge.of(policy, "", 1)));
            return decision.allowed() ? decision::release : null;
        };
    }

    private static Slots setWithExpiry(int port, int limit) {
        StatefulRedisConnection<String, String> redis =
                RedisClient.create(RedisURI.create("redis://127.0.0.1:" + port)).connect();
        String script = """
                local time = redis.call('TIME')
                local now = time[1] * 1000 + math.floor(time[2] / 1000)
                redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
                if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
                    return 0
                end
                redis.call('ZADD', KEYS[1], now + 10000, ARGV[1])
                return 1
                """;
        String sha = redis.sync().scriptLoad(script);
        String[] key = {"load"};
        return () -> {
            String call = UUID.randomUUID().toString();
            long taken = redis.sync().evalsha(sha, ScriptOutputType.INTEGER, key, call, Integer.toString(limit));
            return taken == 1 ? () -> redis.async().zrem(key[0], call) : null;
        };
    }
}
