package io.ratelimit.redis;

import io.lettuce.core.api.sync.RedisCommands;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.LeasingBucketStore;
import io.ratelimit.remote.lease.StoredPlace;
import java.time.Duration;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Keys of transactions in the Redis of all tests. */
record TransactionPlace(RedisKeys keys) implements StoredPlace {

    private static final RedisCommands<byte[], byte[]> REDIS =
            TestRedis.shared().connection().sync();

    private byte[] key(Charge charge) {
        return keys.key(BucketName.of(charge));
    }

    @Override
    public LeasingBucketStore store(LongSupplier micros) {
        return (LeasingBucketStore) TestRedis.shared().transactionStore(keys, Duration.ofSeconds(60), micros);
    }

    @Override
    public byte @Nullable [] value(Charge charge) {
        return REDIS.get(key(charge));
    }

    @Override
    public void remove(Charge charge) {
        REDIS.del(key(charge));
    }
}
