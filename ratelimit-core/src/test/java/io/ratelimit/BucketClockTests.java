package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Scheduler;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class BucketClockTests {

    private final ManualTimeSource time = new ManualTimeSource();
    private final LocalBucketStore.Clock clock = new LocalBucketStore.Clock(time);

    @Test
    void movesWithACallWhenItIsASecondLate() {
        time.advance(Duration.ofMillis(999));
        assertThat(clock.nanoTime()).isEqualTo(time.nanoTime());
        assertThat(clock.read()).isZero();
        time.advance(Duration.ofMillis(1));
        assertThat(clock.nanoTime()).isEqualTo(time.nanoTime());
        assertThat(clock.read()).isEqualTo(time.nanoTime());
    }

    @Test
    void isBroughtUpToDateBeforeACleanUp() {
        AtomicLong seen = new AtomicLong();
        time.advance(Duration.ofMinutes(5));
        clock.schedule(Runnable::run, () -> seen.set(clock.read()), 1, TimeUnit.MILLISECONDS);
        Threads.await(() -> seen.get() == time.nanoTime());
    }

    /** After a flood no call moves the clock, only Caffeine's scheduled clean-up. */
    @Test
    void bucketsAreEvictedWithoutACall() {
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("5/1s"), "user");
        CompletableFuture<Runnable> planned = new CompletableFuture<>();
        Scheduler later = (executor, cleanUp, delay, unit) -> {
            planned.complete(() -> clock.schedule(executor, cleanUp, 1, TimeUnit.MILLISECONDS));
            return new CompletableFuture<>();
        };
        PolicyBuckets buckets = new PolicyBuckets(10, SipHash.withRandomKey(), clock, later, time);
        BucketState bucket = buckets.bucket(Charge.of(policy, "alice", 1), clock.nanoTime());

        time.advance(Duration.ofMinutes(2));
        Threads.await(planned::isDone);
        planned.join().run();

        Threads.await(() -> bucket.fullAt() == BucketState.CLOSED);
    }
}
