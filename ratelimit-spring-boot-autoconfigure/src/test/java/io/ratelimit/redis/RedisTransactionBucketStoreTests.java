package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import io.ratelimit.BucketStoreContract;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;

/** The transaction store, on a clock of the test. */
class RedisTransactionBucketStoreTests extends BucketStoreContract {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final DedicatedConnections connections = TestRedis.shared().dedicatedConnections();
    private final BucketStore store = new RedisTransactionBucketStore(
            connections, TestRedis.keys(), TestRedis.deadline(Duration.ofSeconds(10)), TestRedis.FAILURES, micros::get);

    @AfterEach
    void close() {
        connections.close();
    }

    @Override
    protected BucketStore store() {
        return store;
    }

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }
}
