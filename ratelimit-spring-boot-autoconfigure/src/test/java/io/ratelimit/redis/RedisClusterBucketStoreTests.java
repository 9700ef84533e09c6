package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import io.ratelimit.BucketStoreContract;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** The script store with one key for each script as on a cluster, on a clock of the test. */
class RedisClusterBucketStoreTests extends BucketStoreContract {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final BucketStore store = new RedisScriptBucketStore(
            TestRedis.shared().connection()::async,
            TestRedis.keys(),
            TestRedis.deadline(Duration.ofSeconds(10)),
            TestRedis.FAILURES,
            true,
            micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }
}
