package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StripedBucketTests {

    private final ManualTimeSource time = new ManualTimeSource();

    private StripedBucket striped(BucketSpec spec, int stripes) {
        return new StripedBucket(spec, stripes, time);
    }

    /** S3.9: the article's shards deny while other shards still hold tokens. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 7, 256})
    void givesAllTokensToOneStripe(int stripes) {
        StripedBucket bucket = striped(BucketSpec.of("7/1s").withCapacity(10_007), stripes);
        for (int stripe = 0; stripe < stripes; stripe++) {
            assertThat(bucket.tryAcquire(1, stripe)).isTrue();
        }
        for (int i = stripes; i < 10_007; i++) {
            assertThat(bucket.tryAcquire(1, 0)).as("%d", i).isTrue();
        }
        for (int stripe = 0; stripe < stripes; stripe++) {
            assertThat(bucket.tryAcquire(1, stripe)).isFalse();
        }
    }

    @Test
    void gathersACostFromAllStripes() {
        StripedBucket bucket = striped(BucketSpec.of("1/1s").withCapacity(1_000), 4);
        for (int stripe = 0; stripe < 4; stripe++) {
            assertThat(bucket.tryAcquire(1, stripe)).isTrue();
        }
        assertThat(bucket.tryAcquire(997, 0)).isFalse();
        assertThat(bucket.tryAcquire(996, 1)).isTrue();
        assertThat(bucket.tryAcquire(1, 2)).isFalse();
    }

    /** Slices lie one behind another: while the first one melts, the next don't. */
    @Test
    void anUnusedSliceComesBackNoSooner() {
        StripedBucket bucket = striped(BucketSpec.of("10/1s").withCapacity(160), 2);
        TokenBucket one = TokenBucket.of(BucketSpec.of("10/1s").withCapacity(160), time);
        assertThat(bucket.tryAcquire(1, 0) && bucket.tryAcquire(20, 1)).isTrue();
        assertThat(one.tryAcquire(21)).isTrue();
        time.advance(Duration.ofMillis(2_100));
        assertThat(one.snapshot().available()).isEqualTo(160);
        assertThat(bucket.snapshot().available()).isEqualTo(140);
        time.advance(Duration.ofSeconds(2));
        assertThat(bucket.snapshot().available()).isEqualTo(160);
    }

    /** A thread may be delayed between reading the clock and taking from a slice that was gathered meanwhile. */
    @Test
    void noTokenIsTakenFromAGatheredSlice() {
        HeldUpTimeSource clock = new HeldUpTimeSource(Duration.ZERO);
        StripedBucket bucket = new StripedBucket(BucketSpec.of("1/1d").withCapacity(1_000), 2, clock);
        assertThat(bucket.tryAcquire(1, 0)).isTrue();
        clock.holdUpNextReader(
                Duration.ZERO, () -> assertThat(bucket.tryAcquire(999, 1)).isTrue());
        assertThat(bucket.tryAcquire(1, 0)).isFalse();
        assertThat(bucket.snapshot().available()).isZero();
    }

    @Test
    void distinguishesACostThatNeverFitsFromAShortBucket() {
        StripedBucket bucket = striped(BucketSpec.of("1/1s").withCapacity(100), 3);
        assertThat(bucket.tryAcquire(101)).isFalse();
        assertThat(bucket.tryAcquire(1)).isTrue();
        assertThat(bucket.tryAcquire(101)).isFalse();
        assertThat(bucket.decide(101).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(bucket.decide(100).retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(bucket.tryAcquire(99)).isTrue();
        assertThat(bucket.tryAcquire(Long.MAX_VALUE)).isFalse();
        assertThat(bucket.decide(1).outcome()).isEqualTo(Outcome.DENIED);
    }

    /** A new slice where another one lies would pay the same time twice. */
    @Test
    void aCostThatNeverFitsLeavesTheSlicesBehindOneAnother() {
        StripedBucket bucket = striped(BucketSpec.of("1/1s").withCapacity(1_000), 2);
        assertThat(bucket.tryAcquire(1, 0) && bucket.tryAcquire(1, 1)).isTrue();
        assertThat(bucket.tryAcquire(1_001, 0)).isFalse();
        assertThat(bucket.tryAcquire(1, 0)).isTrue();
        time.advance(Duration.ofSeconds(127));
        assertThat(takeAll(bucket)).isEqualTo(1_000);
    }

    @Test
    void aClockThatThrowsLeavesTheSlicesBehindOneAnother() {
        HeldUpTimeSource clock = new HeldUpTimeSource(Duration.ZERO);
        StripedBucket bucket = new StripedBucket(BucketSpec.of("1/1s").withCapacity(1_000), 2, clock);
        assertThat(bucket.tryAcquire(1, 0) && bucket.tryAcquire(1, 1)).isTrue();
        failThirdReading(clock);
        assertThatIllegalStateException().isThrownBy(() -> bucket.tryAcquire(130, 0));
        assertThat(bucket.tryAcquire(1, 0)).isTrue();
        clock.holdUpNextReader(Duration.ofSeconds(127), () -> {});
        clock.nanoTime();
        assertThat(takeAll(bucket)).isEqualTo(1_000);
    }

    /** Fails where a slice has been closed, and no other is open yet. */
    private static void failThirdReading(HeldUpTimeSource clock) {
        Runnable third = () -> {
            throw new IllegalStateException("no time");
        };
        Runnable second = () -> clock.holdUpNextReader(Duration.ZERO, third);
        clock.holdUpNextReader(Duration.ZERO, () -> clock.holdUpNextReader(Duration.ZERO, second));
    }

    private static int takeAll(StripedBucket bucket) {
        int taken = 0;
        while (bucket.tryAcquire(1, 1) || bucket.tryAcquire(1, 0)) {
            taken++;
        }
        return taken;
    }

    @Test
    void waitingCallsAreServedInTheOrderOfArrivalAndNeverOvertaken() throws Exception {
        StripedBucket bucket = striped(BucketSpec.of("10/1s").withCapacity(1_000), 4);
        for (int stripe = 0; stripe < 4; stripe++) {
            assertThat(bucket.tryAcquire(10, stripe)).isTrue();
        }
        assertThat(bucket.reserve(960).delay()).isZero();
        List<CompletableFuture<Decision>> waiting = new ArrayList<>();
        for (int i = 1; i <= 50; i++) {
            waiting.add(bucket.acquireAsync(i, Duration.ofDays(1)));
            assertThat(bucket.tryAcquire(1, i % 4)).isFalse();
        }
        assertThat(bucket.tryAcquire(1, Duration.ofSeconds(1))).isFalse();
        for (int due = 0, i = 1; i <= 50; i++) {
            due += i * 100;
            time.advance(Duration.ofMillis(due - 1).minusNanos(time.nanoTime()));
            assertThat(waiting.get(i - 1)).isNotDone();
            assertThat(bucket.tryAcquire(1, i % 4)).isFalse();
            time.advance(Duration.ofMillis(1));
            assertThat(waiting.get(i - 1)).isCompleted();
        }
    }

    @Test
    void cancellingGivesBackAndStripesFindIt() {
        StripedBucket bucket = striped(BucketSpec.of("10/1s").withCapacity(1_000), 4);
        assertThat(bucket.tryAcquire(1, 0)).isTrue();
        Reservation reservation = bucket.reserve(999);
        assertThat(reservation.delay()).isZero();
        assertThat(bucket.tryAcquire(1, 0)).isFalse();
        assertThat(reservation.cancel()).isTrue();
        for (int i = 0; i < 999; i++) {
            assertThat(bucket.tryAcquire(1, i % 4)).isTrue();
        }
        assertThat(bucket.tryAcquire(1, 0)).isFalse();
        bucket.giveBack(5);
        assertThat(bucket.tryAcquire(5, 2)).isTrue();
        assertThat(bucket.tryAcquire(1, 0)).isFalse();
    }

    @Test
    void reconfiguringKeepsTheTokensOfAllStripes() {
        StripedBucket bucket = striped(BucketSpec.of("1/1d").withCapacity(1_000), 4);
        for (int stripe = 0; stripe < 4; stripe++) {
            assertThat(bucket.tryAcquire(2, stripe)).isTrue();
        }
        bucket.reconfigure(BucketSpec.of("7/1d").withCapacity(2_000));
        assertThat(bucket.snapshot().available()).isEqualTo(992);
        assertThat(bucket.tryAcquire(2, 1)).isTrue();
        bucket.reconfigure(BucketSpec.of("7/1m").withCapacity(100));
        assertThat(bucket.tryAcquire(50, 1) && bucket.tryAcquire(50, 2)).isTrue();
        assertThat(bucket.tryAcquire(1, 3)).isFalse();
        time.advance(Duration.ofMinutes(1));
        assertThat(bucket.snapshot().available()).isEqualTo(7);
    }

    @ParameterizedTest
    @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 257, Integer.MAX_VALUE})
    void rejectsANumberOfStripesOutsideTheRange(int stripes) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TokenBucket.striped(BucketSpec.of("1/s"), stripes))
                .withMessage("stripes must be between 1 and 256, but was " + stripes);
    }

    @Test
    void rejectsACostBelowOne() {
        TokenBucket bucket = TokenBucket.striped(BucketSpec.of("1/s"), 2);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> bucket.tryAcquire(0))
                .withMessage("tokens must be at least 1, but was 0");
    }
}
