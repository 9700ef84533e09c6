package io.ratelimit.benchmarks;

import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.github.bucket4j.redis.lettuce.cas.LettuceBasedProxyManager;
import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.channel.Channel;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import org.redisson.Redisson;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Limiters on Redis, and the floors: the least cost of a Redis call. All use one server, and each calling thread waits for
 * the reply, as the threads of a web server do. All except Redisson give each key 1,000 tokens a second and a burst of a
 * billion, more than a run takes.
 */
final class RedisLimiters implements AutoCloseable {

    static final String PING = "PING";
    static final String EVALSHA = "trivial EVALSHA";
    static final String GCRA = "bare GCRA script";
    static final String SHARED_GCRA = "bare GCRA script, shared calls";
    static final String BUCKET4J = "bucket4j-lettuce";
    static final String REDISSON = "Redisson";
    static final String SCRIPT = "ratelimit, script";
    static final String TWO_BY_SCRIPT = "ratelimit, script, two policies";
    static final String LEASE = "ratelimit, script, lease of 20 ms";
    static final String TRANSACTION = "ratelimit, transaction";
    static final String TWO_BY_TRANSACTION = "ratelimit, transaction, two policies";

    /** The floors first. */
    static final List<String> NAMES = List.of(
            PING,
            EVALSHA,
            GCRA,
            SHARED_GCRA,
            BUCKET4J,
            REDISSON,
            SCRIPT,
            TWO_BY_SCRIPT,
            LEASE,
            TRANSACTION,
            TWO_BY_TRANSACTION);

    static final int RATE = 1_000;
    static final int CAPACITY = 1_000_000_000;

    /** Redisson notes each token of the last second apart: with a smaller rate a run would drain it. */
    private static final int RATE_OF_REDISSON = 1_000_000;

    private final ClientResources resources;
    private final RedisClient lettuce;
    private final Channel channel;
    private final RedissonClient redisson;
    private final OursOnRedis script;
    private final OursOnRedis transaction;
    private final StatefulRedisConnection<String, byte[]> connection;

    RedisLimiters(int port) {
        AtomicReference<Channel> latest = new AtomicReference<>();
        resources = ClientResources.builder()
                .nettyCustomizer(new NettyCustomizer() {
                    @Override
                    public void afterChannelInitialized(Channel channel) {
                        latest.set(channel);
                    }
                })
                .build();
        lettuce = RedisClient.create(resources, "redis://127.0.0.1:" + port);
        connection = lettuce.connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE));
        channel = Objects.requireNonNull(latest.get());
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        redisson = Redisson.create(config);
        script = OursOnRedis.byScript(port, resources);
        transaction = OursOnRedis.byTransaction(port, resources);
    }

    /** Returns all limiters by name; each returns whether it allowed the call of a key. */
    Map<String, Predicate<String>> all() {
        RedisAsyncCommands<String, byte[]> redis = connection.async();
        List<Predicate<String>> limiters = List.of(
                key -> await(redis.ping()) != null,
                evalsha(redis),
                gcra(redis),
                sharedGcra(redis),
                bucket4j(),
                this::redisson,
                script.policies(1),
                script.policies(2),
                script::isLeased,
                transaction.policies(1),
                transaction.policies(2));
        Map<String, Predicate<String>> all = new LinkedHashMap<>();
        for (int i = 0; i < limiters.size(); i++) {
            all.put(NAMES.get(i), limiters.get(i));
        }
        return all;
    }

    /** Returns the limiters that store a value in Redis for each key. */
    Map<String, Predicate<String>> keepers() {
        Map<String, Predicate<String>> keepers = new LinkedHashMap<>(all());
        keepers.keySet().retainAll(List.of(GCRA, BUCKET4J, REDISSON, SCRIPT));
        return keepers;
    }

    StatefulRedisConnection<String, byte[]> connection() {
        return connection;
    }

    OursOnRedis script() {
        return script;
    }

    /** Sets the rate of each key, as Redisson requires; not measured. */
    void prepare(String[] keys) {
        for (String key : keys) {
            redisson.getRateLimiter("redisson:" + key)
                    .trySetRate(RateType.OVERALL, RATE_OF_REDISSON, Duration.ofSeconds(1));
        }
    }

    private static Predicate<String> evalsha(RedisAsyncCommands<String, byte[]> redis) {
        String sha = await(redis.scriptLoad("return redis.call('GET', KEYS[1])"));
        byte[] value = "as long as what a bucket is kept as".getBytes(StandardCharsets.US_ASCII);
        await(redis.set("floor", value));
        return key -> await(redis.<byte[]>evalsha(sha, ScriptOutputType.VALUE, "floor")) != null;
    }

    private static byte[][] gcraArguments() {
        String token = Integer.toString(1_000_000 / RATE);
        String full = Long.toString(1_000_000L / RATE * CAPACITY);
        return new byte[][] {token.getBytes(StandardCharsets.US_ASCII), full.getBytes(StandardCharsets.US_ASCII)};
    }

    private static Predicate<String> gcra(RedisAsyncCommands<String, byte[]> redis) {
        String sha = await(redis.scriptLoad(resource("gcra.lua")));
        byte[][] arguments = gcraArguments();
        return key -> {
            String[] keys = {"gcra:" + key};
            return await(redis.<Long>evalsha(sha, ScriptOutputType.INTEGER, keys, arguments)) >= 0;
        };
    }

    private Predicate<String> sharedGcra(RedisAsyncCommands<String, byte[]> redis) {
        String sha = await(redis.scriptLoad(resource("gcra-each.lua")));
        SharedCalls calls = new SharedCalls(redis, channel.eventLoop(), sha, gcraArguments());
        return key -> await(calls.start("gcra:" + key)) >= 0;
    }

    private static String resource(String name) {
        try (InputStream in = RedisLimiters.class.getResourceAsStream(name)) {
            return new String(Objects.requireNonNull(in, name).readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private Predicate<String> bucket4j() {
        BucketConfiguration configuration = BucketConfiguration.builder()
                .addLimit(limit -> limit.capacity(CAPACITY).refillGreedy(RATE, Duration.ofSeconds(1)))
                .build();
        LettuceBasedProxyManager<String> manager = Bucket4jLettuce.casBasedBuilder(connection)
                .expirationAfterWrite(
                        ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofSeconds(1)))
                .build();
        return key -> manager.getProxy("bucket4j:" + key, () -> configuration).tryConsume(1);
    }

    private boolean redisson(String key) {
        RRateLimiter limiter = redisson.getRateLimiter("redisson:" + key);
        return limiter.tryAcquire();
    }

    private static <T> T await(Future<T> answer) {
        try {
            return answer.get(10, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException failed) {
            throw new IllegalStateException(failed);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }

    @Override
    public void close() {
        script.close();
        transaction.close();
        redisson.shutdown();
        lettuce.shutdown();
        resources.shutdown();
    }
}
