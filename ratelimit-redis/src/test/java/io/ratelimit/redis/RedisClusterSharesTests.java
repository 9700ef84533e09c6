package io.ratelimit.redis;

import io.ratelimit.BucketStore;
import io.ratelimit.SharesContract;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;

/** Guaranteed shares with a script call for each policy as on a cluster, on a clock of the test. */
@Tag("slow")
class RedisClusterSharesTests extends SharesContract {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final BucketStore store =
            TestRedis.shared().scriptStore(TestRedis.keys(), Duration.ofSeconds(10), true, micros::get);

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
