package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import java.time.Duration;
import org.junit.jupiter.api.Tag;

/** The script store on a single server, on a clock of the test. */
@Tag("slow")
class RedisScriptBucketStoreTests extends RedisBucketStoreContract {

    private final BucketStore store =
            TestRedis.shared().scriptStore(TestRedis.keys(), Duration.ofSeconds(10), false, micros::get);

    @Override
    protected BucketStore store() {
        return store;
    }
}
