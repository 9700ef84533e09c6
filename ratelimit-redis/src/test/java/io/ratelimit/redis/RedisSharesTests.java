package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.cluster.SlotHash;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Shares;
import io.ratelimit.SharesContract;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Guaranteed shares in Redis, on a clock of the test. */
class RedisSharesTests extends SharesContract {

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

    @Test
    void aClusterKeepsAllKeysOfSharesInOneSlot() {
        RedisKeys keys = TestRedis.keys();
        Shares shares = Shares.forKeys(BucketSpec.of("1/s"), 2, List.of("user"));
        Charge charge =
                Charge.of(ThrottlePolicy.of("api", BucketSpec.of("10/s")).withShares(shares), "", 1);
        assertThat(SlotHash.getSlot(keys.key(charge))).isEqualTo(SlotHash.getSlot(keys.lanes(charge)));
        assertThat(keys.key(charge)).isNotEqualTo(keys.lanes(charge));
    }
}
