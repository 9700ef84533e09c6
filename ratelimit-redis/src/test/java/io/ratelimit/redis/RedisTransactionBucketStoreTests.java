package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import java.time.Duration;
import org.junit.jupiter.api.Tag;

/** The transaction store, on a clock of the test. */
@Tag("slow")
class RedisTransactionBucketStoreTests extends RedisBucketStoreContract {

    private final BucketStore store =
            TestRedis.shared().transactionStore(TestRedis.keys(), Duration.ofSeconds(10), micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }
}
