package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Calls to one key that all have specs of their own, as code that reads a customer's limit may give them. */
class AlternatingSpecsTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("plans", BucketSpec.of("1/1h"), "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final LocalBucketStore store = new LocalBucketStore(time);

    private boolean take(BucketSpec spec) {
        return store.take(List.of(new Charge(POLICY, spec, "alice", 1))).allowed();
    }

    @RepeatedTest(20)
    void noTokenIsLostWhileEachCallHasAnotherSpec(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        Refill refill = run.getCurrentRepetition() % 2 == 0 ? Refill.GREEDY : Refill.INTERVAL;
        time.advance(Duration.ofMinutes(random.nextInt(60)));
        assertThat(take(new BucketSpec(Rate.of("1/1d"), 1_000, refill))).isTrue();
        for (int i = 1; i < 1_000; i++) {
            Rate rate = new Rate(random.nextInt(20, 1_000), Duration.ofHours(random.nextInt(24, 1_000)));
            assertThat(take(new BucketSpec(rate, random.nextInt(1_000, 2_000), refill)))
                    .as("seed %d, call %d", run.getCurrentRepetition(), i)
                    .isTrue();
        }
        assertThat(take(new BucketSpec(Rate.of("1/1d"), 1_000, refill))).isFalse();
    }

    /** These capacities are the same modulo any power of two up to 256, as the place of a recent scale is. */
    @Test
    void eachKeyCountsByItsOwnSpec() {
        for (int capacity = 256; capacity <= 1_024; capacity += 256) {
            BucketSpec spec = BucketSpec.of("1/1h").withCapacity(capacity);
            Decision decision = store.take(List.of(new Charge(POLICY, spec, "user-" + capacity, 1)));
            assertThat(decision.answers().get(0).remaining()).isEqualTo(capacity - 1);
        }
    }

    @Test
    void twoSpecsThatTakeTurnsGiveNoLessThanTheSlower() {
        List<BucketSpec> specs =
                List.of(BucketSpec.of("60/1h"), BucketSpec.of("61/1h").withCapacity(60));
        int allowed = 0;
        for (int i = 0; i < 24 * 120; i++) {
            if (take(specs.get(i % 2))) {
                allowed++;
            }
            time.advance(Duration.ofSeconds(30));
        }
        assertThat(allowed).isBetween(24 * 60 + 59, 24 * 61 + 60);
    }

    /** A change in the middle of a batch leaves a fraction of the next one. */
    @Test
    void changesWithinABatchCostTheNextOneNothing() {
        List<BucketSpec> specs = List.of(
                new BucketSpec(Rate.of("60/1h"), 60, Refill.INTERVAL),
                new BucketSpec(Rate.of("61/1h"), 60, Refill.INTERVAL));
        for (int i = 0; i < 60; i++) {
            assertThat(take(specs.get(0))).isTrue();
        }
        time.advance(Duration.ofMinutes(30));
        for (int i = 1; i <= 10; i++) {
            assertThat(take(specs.get(i % 2))).isFalse();
        }
        time.advance(Duration.ofMinutes(30));
        for (int i = 0; i < 60; i++) {
            assertThat(take(specs.get(0))).isTrue();
        }
        assertThat(take(specs.get(0))).isFalse();
    }

    /** The tokens of half of the time come at one rate, and those of the other half at the other. */
    @Test
    void twoSpecsWithBatchesThatTakeTurnsGiveTheTokensOfBoth() {
        List<BucketSpec> specs = List.of(
                new BucketSpec(Rate.of("600/1h"), 10_000, Refill.INTERVAL),
                new BucketSpec(Rate.of("701/1h"), 10_000, Refill.INTERVAL));
        int allowed = 0;
        while (allowed < 9_000) {
            assertThat(take(specs.get(0))).isTrue();
            allowed++;
        }
        for (int i = 0; i < 24 * 600; i++) {
            assertThat(take(specs.get(i % 2))).as("call %d", i).isTrue();
            allowed++;
            time.advance(Duration.ofSeconds(6));
        }
        while (take(specs.get(0))) {
            allowed++;
        }
        assertThat(allowed).isEqualTo(10_000 + 24 * (600 + 701) / 2);
    }

    /** By the larger capacity the bucket is nearly empty all the time, though by the smaller one it is soon full. */
    @Test
    void aBucketOfASmallerCapacityIsKeptUntilItIsFullByTheLarger() {
        BucketSpec large = BucketSpec.of("100/1h");
        int allowed = 0;
        for (int i = 0; i < 10; i++) {
            while (take(large)) {
                allowed++;
            }
            take(large.withCapacity(1));
            take(large.withCapacity(2));
            time.advance(Duration.ofMinutes(6));
        }
        assertThat(allowed).isBetween(100, 200);
        time.advance(Duration.ofHours(3));
        assertThat(store.size(POLICY)).isZero();
    }

    @Test
    void equalSpecsShareOneScaleAndUnusedOnesAreForgotten() {
        for (int i = 0; i < 10_000; i++) {
            Charge charge =
                    new Charge(POLICY, new BucketSpec(Rate.of("7/1h"), 10 + i % 10, Refill.GREEDY), "user" + i, 1);
            store.take(List.of(charge));
        }
        assertThat(store.buckets(POLICY).specs()).isEqualTo(10);
    }
}
