package io.ratelimit.redis;

import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** The registers of this process in Redis, set by a script. Thread-safe. */
final class RedisRegisters {

    private static final String RESOURCE = "slots.lua";

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final RedisKeys keys;
    private final LongSupplier time;
    private final byte[] text = RedisScript.read(RESOURCE);
    private final String sha = RedisScript.sha1(text);

    /** The name of this process. A process that continues from a checkpoint gets another one, as others may too. */
    private volatile byte[] process = newProcess();

    /** @param time returns {@link RedisBucketStore#SERVER_TIME}, or in tests a time in microseconds */
    RedisRegisters(Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis, RedisKeys keys, LongSupplier time) {
        this.redis = redis;
        this.keys = keys;
        this.time = time;
    }

    void restart() {
        process = newProcess();
    }

    private static byte[] newProcess() {
        return ascii(String.format("%016x", new SecureRandom().nextLong()));
    }

    CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
        byte[][] redisKey = {keys.slots(key)};
        byte[][] arguments = arguments(claim, timeToLive);
        CompletableFuture<Reply> result = new CompletableFuture<>();
        redis.get()
                .<List<Long>>evalsha(sha, ScriptOutputType.MULTI, redisKey, arguments)
                .whenComplete((reply, failure) -> {
                    if (failure instanceof RedisNoScriptException) {
                        evalText(redisKey, arguments, result);
                    } else {
                        complete(result, reply, failure);
                    }
                });
        return result;
    }

    private void evalText(byte[][] key, byte[][] arguments, CompletableFuture<Reply> result) {
        try {
            redis.get()
                    .<List<Long>>eval(text, ScriptOutputType.MULTI, key, arguments)
                    .whenComplete((reply, failure) -> complete(result, reply, failure));
        } catch (RuntimeException unsent) {
            result.completeExceptionally(unsent);
        }
    }

    private static void complete(CompletableFuture<Reply> result, List<Long> reply, Throwable failure) {
        if (failure != null) {
            result.completeExceptionally(failure);
        } else {
            result.complete(new Reply(reply.get(0).intValue(), reply.get(1).intValue()));
        }
    }

    private byte[][] arguments(Claim claim, Duration timeToLive) {
        List<byte[]> arguments = new ArrayList<>(7);
        arguments.add(process);
        arguments.add(digits(claim.number()));
        arguments.add(digits(claim.have()));
        arguments.add(digits(claim.want()));
        arguments.add(digits(claim.limit()));
        arguments.add(digits(timeToLive.toMillis()));
        long testTime = time.getAsLong();
        if (testTime != RedisBucketStore.SERVER_TIME) {
            arguments.add(digits(testTime));
        }
        return arguments.toArray(byte[][]::new);
    }

    private static byte[] digits(long number) {
        return ascii(Long.toString(number));
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
