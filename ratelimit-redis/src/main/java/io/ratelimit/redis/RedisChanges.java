package io.ratelimit.redis;

import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.remote.SignedChangeBoard;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * The changes of limits for all instances, in the hash {@code prefix:changes}: a field for each limit. A value
 * has an HMAC if there is a secret. Each operation fails with a {@link BackendException} after at most a second.
 * Thread-safe.
 */
final class RedisChanges extends SignedChangeBoard {

    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    /** The time of the node that has the key. The command TIME has no key, and a cluster sends it to any node. */
    private static final byte[] TIME_OF_KEY = bytes("return redis.call('TIME')");

    private final RedisConnections connections;
    private final byte[] key;

    /** @param secret the key of the HMAC of changes; empty for none */
    RedisChanges(RedisConnections connections, String prefix, String secret) {
        super(prefix, secret, "ratelimit.redis.key-secret", "Redis");
        this.connections = connections;
        this.key = bytes(prefix + ":changes");
    }

    /** Reads the fields of these limits alone: another client of Redis may write any number of others. */
    @Override
    public CompletableFuture<Posted> read(Collection<String> limits) {
        byte[][] fields = limits.stream().map(RedisChanges::bytes).toArray(byte[][]::new);
        return call(redis -> {
            CompletableFuture<List<byte[]>> time = time(redis);
            return redis.hmget(key, fields).toCompletableFuture().thenCombine(time, (values, now) -> {
                Map<String, String> texts = new HashMap<>();
                values.forEach(field -> field.ifHasValue(value -> texts.put(text(field.getKey()), text(value))));
                return new Posted(instant(now), texts);
            });
        });
    }

    private CompletableFuture<List<byte[]>> time(RedisClusterAsyncCommands<byte[], byte[]> redis) {
        return connections.isCluster()
                ? redis.<List<byte[]>>eval(TIME_OF_KEY, ScriptOutputType.MULTI, new byte[][] {key})
                        .toCompletableFuture()
                : redis.time().toCompletableFuture();
    }

    private static Instant instant(List<byte[]> time) {
        return Instant.ofEpochSecond(Long.parseLong(text(time.get(0))))
                .plus(Long.parseLong(text(time.get(1))), ChronoUnit.MICROS);
    }

    @Override
    public CompletableFuture<?> put(String field, String value) {
        return call(redis -> redis.hset(key, bytes(field), bytes(value)).toCompletableFuture());
    }

    @Override
    public CompletableFuture<Boolean> remove(String field) {
        return call(redis -> redis.hdel(key, bytes(field)).toCompletableFuture().thenApply(removed -> removed > 0));
    }

    private <T> CompletableFuture<T> call(
            Function<RedisClusterAsyncCommands<byte[], byte[]>, CompletableFuture<T>> call) {
        long began = System.nanoTime();
        try {
            return call.apply(connections.shared())
                    .orTimeout(TIMEOUT.toNanos(), TimeUnit.NANOSECONDS)
                    .handle((result, failure) -> {
                        if (failure != null) {
                            throw connections.failed(RedisFailures.of(failure), began);
                        }
                        return result;
                    });
        } catch (RuntimeException unsent) {
            return CompletableFuture.failedFuture(connections.failed(RedisFailures.of(unsent), began));
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
