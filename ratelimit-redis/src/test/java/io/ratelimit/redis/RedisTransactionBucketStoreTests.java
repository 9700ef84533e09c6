package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;

/** The transaction store, on a clock of the test. */
@Tag("slow")
class RedisTransactionBucketStoreTests extends RedisBucketStoreContract {

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
}
