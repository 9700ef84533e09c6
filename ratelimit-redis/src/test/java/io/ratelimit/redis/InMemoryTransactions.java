package io.ratelimit.redis;

import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.redis.RedisTransactionBucketStore.Change;
import io.ratelimit.redis.RedisTransactionBucketStore.Reading;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** The arithmetic of {@link RedisTransactionBucketStore} on values that are kept in a map and expire on a test's clock. */
final class InMemoryTransactions {

    private final RedisKeys keys;
    private final boolean expire;
    private final RedisTransactionBucketStore store;
    private final Map<ByteBuffer, byte[]> values = new HashMap<>();
    private final Map<ByteBuffer, Long> expiry = new HashMap<>();

    InMemoryTransactions(RedisKeys keys, boolean expire) {
        this.keys = keys;
        this.expire = expire;
        this.store = new RedisTransactionBucketStore(
                new DedicatedConnections(CompletableFuture::new),
                keys,
                TestRedis.deadline(Duration.ofSeconds(1)),
                TestRedis.FAILURES,
                () -> 0);
    }

    Decision take(List<Charge> charges, boolean ahead, long now) {
        List<ByteBuffer> named = charges.stream().map(this::key).toList();
        return written(store.take(charges, named, ahead, reading(now)), now);
    }

    void giveBack(List<Answer> taken, long now) {
        List<ByteBuffer> named =
                taken.stream().map(answer -> key(answer.charge())).toList();
        written(store.giveBack(taken, named, reading(now)), now);
    }

    void settle(Answer taken, long cost, long now) {
        written(store.settle(taken, cost, key(taken.charge()), reading(now)), now);
    }

    /** Returns the bucket as it is now, under the spec that it was written under. */
    RedisBucketState bucket(Charge charge, long now) {
        return reading(now).bucket(key(charge), RedisTickScale.of(charge.spec()), store.calendar(charge));
    }

    /** Returns whether there is no value, as of a full bucket. */
    boolean isForgotten(Charge charge, long now) {
        return bucket(charge, now).missing() == 0 && value(charge) == null;
    }

    byte @Nullable [] value(Charge charge) {
        return values.get(key(charge));
    }

    /** Sets the value that another store wrote; null for a full bucket. */
    void setValue(Charge charge, byte @Nullable [] value) {
        if (value == null) {
            values.remove(key(charge));
        } else {
            values.put(key(charge), value);
        }
    }

    private ByteBuffer key(Charge charge) {
        return ByteBuffer.wrap(keys.key(charge));
    }

    private Reading reading(long now) {
        if (expire && expiry.values().removeIf(moment -> moment <= now)) {
            values.keySet().retainAll(expiry.keySet());
        }
        return new Reading(now, values);
    }

    private <T> T written(Change<T> change, long now) {
        change.buckets().forEach((key, written) -> {
            byte[] value = written.bucket().value();
            if (value == null) {
                values.remove(key);
                expiry.remove(key);
            } else {
                values.put(key, value);
                expiry.put(key, now + 1_000 * written.bucket().millisToKeep(written.now()));
            }
        });
        return change.answer();
    }
}
