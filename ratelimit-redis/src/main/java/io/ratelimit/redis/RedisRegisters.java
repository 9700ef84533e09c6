package io.ratelimit.redis;

import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisScript.Running;
import io.ratelimit.redis.RedisScript.ScriptReply;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** The registers of this process in Redis, set by a script that takes tokens too. Thread-safe. */
final class RedisRegisters {

    private static final String RESOURCE = "slots.lua";

    private final RedisScript script;
    private final RedisKeys keys;
    private final LongSupplier time;

    /** The name of this process. A process that continues from a checkpoint gets another one, as others may too. */
    private volatile byte[] process = newProcess();

    /**
     * @param clock this machine's, which doesn't decide
     * @param time returns {@link RedisBucketStore#SERVER_TIME}, or in tests a time in microseconds
     */
    RedisRegisters(
            Supplier<RedisClusterAsyncCommands<byte[], byte[]>> redis,
            RedisKeys keys,
            LongSupplier time,
            TimeSource clock) {
        this.script = new RedisScript(redis, clock, text());
        this.keys = keys;
        this.time = time;
    }

    private static byte[] text() {
        String bucket = new String(RedisScript.read(RedisScript.RESOURCE), StandardCharsets.UTF_8);
        String slots = new String(RedisScript.read(RESOURCE), StandardCharsets.UTF_8);
        return ("local function bucket(KEYS, ARGV)\n" + bucket + "\nend\n" + slots).getBytes(StandardCharsets.UTF_8);
    }

    void restart() {
        process = newProcess();
    }

    private static byte[] newProcess() {
        return ascii(String.format("%016x", new SecureRandom().nextLong()));
    }

    /** Sets a register. If the result is cancelled, its command isn't written any more. */
    CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
        Running call = start((to, serverMicros) -> {
            to.add(1).addKey(keys.slots(key)).add(1).add(0);
            addArguments(claim, timeToLive, to::add);
            long testTime = time.getAsLong();
            if (testTime != RedisBucketStore.SERVER_TIME) {
                to.add("").add(testTime);
            }
        });
        CompletableFuture<Reply> result = call.thenApply(reply -> reply(reply, 0));
        result.whenComplete((reply, failure) -> call.cancel(true));
        return result;
    }

    /** Starts a call that sets registers, and takes the tokens of the buckets whose keys and arguments follow. */
    Running start(RedisScript.Arguments arguments) {
        return script.start(arguments);
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
                claims.get(i).replied(reply(reply, place + i));
            } else {
                claims.get(i).withdraw();
            }
        }
        return !areSet || reply.has(0);
    }

    private static Reply reply(ScriptReply reply, int place) {
        return new Reply((int) reply.now(place) - 2, (int) reply.missing(place));
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
