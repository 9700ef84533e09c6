package io.ratelimit.redis;

import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The registers of this process in Redis, set by a script. Thread-safe. */
final class RedisRegisters {

    private static final String RESOURCE = "slots.lua";

    private final Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis;
    private final RedisKeys keys;
    private final LongSupplier time;
    private final byte[] text = script("local bucket\n");
    private final String sha = RedisScript.sha1(text);

    /** The name of this process. A process that continues from a checkpoint gets another one, as others may too. */
    private volatile byte[] process = newProcess();

    /** @param time returns {@link RedisBucketStore#SERVER_TIME}, or in tests a time in microseconds */
    RedisRegisters(Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis, RedisKeys keys, LongSupplier time) {
        this.redis = redis;
        this.keys = keys;
        this.time = time;
    }

    /** Returns the script that sets registers and takes tokens. */
    static byte[] withBuckets() {
        String bucket = new String(RedisScript.read(RedisScript.RESOURCE), StandardCharsets.UTF_8);
        return script("local function bucket(KEYS, ARGV)\n" + bucket + "\nend\n");
    }

    private static byte[] script(String bucket) {
        String slots = new String(RedisScript.read(RESOURCE), StandardCharsets.UTF_8);
        return (bucket + slots).getBytes(StandardCharsets.UTF_8);
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
        Result result = new Result();
        result.send(redis.get().evalsha(sha, ScriptOutputType.MULTI, redisKey, arguments), (reply, failure) -> {
            if (failure instanceof RedisNoScriptException) {
                evalText(redisKey, arguments, result);
            } else {
                complete(result, reply, failure);
            }
        });
        return result;
    }

    private void evalText(byte[][] key, byte[][] arguments, Result result) {
        try {
            result.send(
                    redis.get().eval(text, ScriptOutputType.MULTI, key, arguments),
                    (reply, failure) -> complete(result, reply, failure));
        } catch (RuntimeException unsent) {
            result.completeExceptionally(unsent);
        }
    }

    /** A reply to come. If it is cancelled, its command isn't written any more. */
    private static final class Result extends CompletableFuture<Reply> {

        private volatile @Nullable RedisFuture<List<Long>> command;

        void send(RedisFuture<List<Long>> command, BiConsumer<List<Long>, Throwable> receiver) {
            this.command = command;
            command.whenComplete(receiver);
        }

        @Override
        public boolean cancel(boolean mayInterrupt) {
            RedisFuture<List<Long>> sent = command;
            return super.cancel(mayInterrupt) && sent != null && sent.cancel(mayInterrupt);
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
        List<byte[]> arguments = new ArrayList<>(9);
        arguments.add(digits(1));
        arguments.add(digits(0));
        addArguments(claim, timeToLive, arguments::add);
        long testTime = time.getAsLong();
        if (testTime != RedisBucketStore.SERVER_TIME) {
            arguments.add(digits(testTime));
        }
        return arguments.toArray(byte[][]::new);
    }

    void addArguments(Claim claim, Duration timeToLive, Consumer<byte[]> to) {
        to.accept(process);
        to.accept(digits(claim.number()));
        to.accept(digits(claim.have()));
        to.accept(digits(claim.want()));
        to.accept(digits(claim.limit()));
        to.accept(digits(timeToLive.toMillis()));
    }

    /**
     * Completes claims by the reply of a call that takes tokens too.
     *
     * @param place the place of the first register in the reply
     * @return whether the reply has the buckets, as no call was denied a slot
     */
    static boolean complete(List<CarriedClaim> claims, ScriptReply reply, int place) {
        boolean areSet = reply.has(place);
        for (int i = 0; i < claims.size(); i++) {
            if (areSet) {
                claims.get(i).replied(new Reply((int) reply.now(place + i) - 2, (int) reply.missing(place + i)));
            } else {
                claims.get(i).withdraw();
            }
        }
        return !areSet || reply.has(0);
    }

    byte[] key(CarriedClaim claim) {
        return keys.slots(claim.key());
    }

    private static byte[] digits(long number) {
        return ascii(Long.toString(number));
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
