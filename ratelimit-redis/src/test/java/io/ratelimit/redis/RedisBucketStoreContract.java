package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStoreContract;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** The contract of a bucket store, for a store in Redis on a clock of the test. */
abstract class RedisBucketStoreContract extends BucketStoreContract {

    final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);

    @Override
    protected void advance(Duration step) {
        micros.addAndGet(step.toNanos() / 1_000);
    }

    @Override
    protected void setWallClock(Instant now) {
        micros.set(ChronoUnit.MICROS.between(Instant.EPOCH, now));
    }

    /** As when the key expires, since its bucket is full, or Redis loses it. */
    @Test
    void tokensOfAKeyThatWasDeletedDoNotComeBackToANewOne() {
        Charge all = Charge.of(ThrottlePolicy.of("user", BucketSpec.of("5/1h"), "user"), "alice", 5);
        Decision before = store().take(List.of(all));
        store().reset(all);
        advance(Duration.ofNanos(1_000));
        assertThat(store().take(List.of(all)).allowed()).isTrue();
        store().giveBack(before.answers());
        assertThat(store().snapshot(all).available()).isZero();
    }
}
