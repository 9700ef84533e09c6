package io.ratelimit.redis;

import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.BackendException;
import io.ratelimit.ChangeBoard;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The changes of limits for all instances, in the hash {@code prefix:changes}: a field for each limit. A value
 * ends with {@code hmac=…} if there is a secret: the proof that an instance with the same secret has written it. The HMAC
 * covers the prefix of the application's keys, the limit, and the text with its times, so a change can't be moved to another
 * application or limit. Each operation fails with a {@link BackendException} after at most a second.
 * Thread-safe.
 */
final class RedisChanges implements ChangeBoard {

    private static final String MARK = " hmac=";
    private static final String ALGORITHM = "HmacSHA256";

    /** Makes the key another one than that of {@link RedisKeys}, which hashes texts that clients choose. */
    private static final String PURPOSE = "changes of limits: ";

    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    /** The time of the node that has the key. The command TIME has no key, and a cluster sends it to any node. */
    private static final byte[] TIME_OF_KEY = bytes("return redis.call('TIME')");

    private final RedisConnections connections;
    private final byte[] key;
    private final String prefix;
    private final String secret;

    /** @param secret the key of the HMAC of changes; empty for none */
    RedisChanges(RedisConnections connections, String prefix, String secret) {
        this.connections = connections;
        this.key = bytes(prefix + ":changes");
        this.prefix = prefix;
        this.secret = secret;
    }

    @Override
    public boolean areSigned() {
        return !secret.isEmpty();
    }

    @Override
    public String sign(String limit, String change) {
        return areSigned()
                ? change + MARK + Base64.getUrlEncoder().withoutPadding().encodeToString(hmac(limit, change))
                : change;
    }

    @Override
    public String verify(String limit, String value) {
        int mark = value.lastIndexOf(MARK);
        if (!areSigned()) {
            if (mark >= 0) {
                throw new IllegalArgumentException(
                        "it has an HMAC, and this instance has no 'ratelimit.redis.key-secret'");
            }
            return value;
        }
        String change = mark < 0 ? value : value.substring(0, mark);
        // isEqual compares in a time that doesn't depend on the bytes.
        if (mark < 0 || !MessageDigest.isEqual(bytes(sign(limit, change)), bytes(value))) {
            throw new IllegalArgumentException("it has " + (mark < 0 ? "no HMAC" : "a wrong HMAC")
                    + ", so no instance with this 'ratelimit.redis.key-secret' has written it for this limit: remove it"
                    + " from Redis, find out who can write there, and send changes to the actuator");
        }
        return change;
    }

    /** Returns the HMAC of the three texts. The lengths separate them. */
    private byte[] hmac(String limit, String change) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(bytes(PURPOSE + secret), ALGORITHM));
            return mac.doFinal(bytes(prefix.length() + ":" + prefix + limit.length() + ":" + limit + change));
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this JVM has no " + ALGORITHM, missing);
        }
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
