package io.ratelimit.redis;

import io.ratelimit.BucketStoreContract;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** The contract of a bucket store, for a store in Redis on a clock of the test. */
abstract class RedisBucketStoreContract extends BucketStoreContract {

    final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }
}
