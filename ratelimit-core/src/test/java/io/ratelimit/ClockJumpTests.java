package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec.Refill;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A process that is restored from a checkpoint may find its clock anywhere. */
class ClockJumpTests {

    private static final long SECOND = Duration.ofSeconds(1).toNanos();

    private long clock;

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "CALENDAR")
    void aClockThatGoesBackGrantsNothingBeyondTheTimeThatPassed(Refill refill) {
        for (int seed = 1; seed <= 200; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            long rate = random.nextLong(1, 20);
            long capacity = random.nextLong(1, 20);
            BucketSpec spec = BucketSpec.of(rate + "/1s").withCapacity(capacity).withRefill(refill);
            clock = random.nextLong(-3600, 3600) * SECOND;
            BucketStore store = BucketStore.local(() -> clock);
            Charge charge = Charge.of(ThrottlePolicy.of("api", spec, "user"), "alice", 1);
            long batches = refill == Refill.INTERVAL ? 1 : 0;
            long passed = 0;
            long granted = 0;
            for (int step = 0; step < 500; step++) {
                long elapsed = random.nextLong(SECOND / 2);
                passed += elapsed;
                clock += elapsed;
                if (random.nextInt(10) == 0) {
                    clock -= random.nextLong(3 * SECOND);
                }
                granted += store.take(List.of(charge)).allowed() ? 1 : 0;
                assertThat(granted)
                        .as("seed %d, step %d", seed, step)
                        .isLessThanOrEqualTo(capacity + rate * (passed / SECOND + 1 + batches));
            }
            assertThat(granted).as("seed %d", seed).isGreaterThanOrEqualTo(capacity);
        }
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "CALENDAR")
    void aClockThatJumpsForwardFillsABucketOnce(Refill refill) {
        BucketSpec spec = BucketSpec.of("1/1h").withCapacity(3).withRefill(refill);
        BucketStore store = BucketStore.local(() -> clock);
        Charge charge = Charge.of(ThrottlePolicy.of("api", spec, "user"), "alice", 1);
        for (int i = 0; i < 4; i++) {
            assertThat(store.take(List.of(charge)).allowed()).isEqualTo(i < 3);
        }
        clock += Duration.ofDays(365).toNanos();
        for (int i = 0; i < 4; i++) {
            assertThat(store.take(List.of(charge)).allowed()).isEqualTo(i < 3);
        }
    }
}
