package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import io.ratelimit.SharesWaitContract;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Calls that wait for their guaranteed share in Redis, on a clock of the test. */
class RedisSharesWaitTests extends SharesWaitContract {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final BucketStore store =
            TestRedis.shared().scriptStore(TestRedis.keys(), Duration.ofSeconds(10), false, micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }

    @Override
    protected int histories() {
        return 100;
    }
}
