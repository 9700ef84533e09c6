package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import java.time.Duration;
import org.junit.jupiter.api.Tag;

/** The script store with one key for each script as on a cluster, on a clock of the test. */
@Tag("slow")
class RedisClusterBucketStoreTests extends RedisBucketStoreContract {

    private final BucketStore store =
            TestRedis.shared().scriptStore(TestRedis.keys(), Duration.ofSeconds(10), true, micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }
}
