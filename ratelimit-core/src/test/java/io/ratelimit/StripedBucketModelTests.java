package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;

/** Compares the striped bucket with an ordinary one, over random specs of the whole domain. */
@Tag("slow")
class StripedBucketModelTests {

    private static final int STEPS = 2_000;
    private static final long LONGEST_RUN = Duration.ofDays(365 * 100).toNanos();

    private final ManualTimeSource time = new ManualTimeSource();

    /** Unused lent tokens are available to the last fraction, as if they hadn't been lent. */
    @RepeatedTest(300)
    void answersALoneThreadExactlyAsOneBucket(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = Specs.randomSpec(random);
        TokenBucket one = TokenBucket.of(spec, time);
        StripedBucket striped = new StripedBucket(spec, random.nextInt(1, 9), time);
        long few = Specs.upTo(Math.max(spec.capacity() / 300, 1), random);
        for (int i = 0; i < STEPS && time.nanoTime() < LONGEST_RUN; i++) {
            String step = "seed %d, step %d: %s".formatted(run.getCurrentRepetition(), i, spec);
            time.advance(Duration.ofNanos(randomStep(spec, few, random)));
            long cost = random.nextInt(9) > 0 ? few : Specs.upTo(spec.capacity() + 1, random);
            switch (random.nextInt(40)) {
                case 0 -> assertThat(striped.snapshot()).as(step).isEqualTo(one.snapshot());
                case 1 -> assertThat(striped.decide(cost)).as(step).isEqualTo(one.decide(cost));
                case 2 -> {
                    one.giveBack(cost);
                    striped.giveBack(cost);
                }
                case 3 -> {
                    Reservation expected = one.reserve(cost, Duration.ofDays(1));
                    Reservation reservation = striped.reserve(cost, Duration.ofDays(1));
                    assertThat(reservation.decision()).as(step).isEqualTo(expected.decision());
                    if (random.nextBoolean()) {
                        assertThat(reservation.cancel()).isEqualTo(expected.cancel());
                    }
                }
                default -> assertThat(striped.tryAcquire(cost, 0)).as(step).isEqualTo(one.tryAcquire(cost));
            }
        }
        assertThat(striped.snapshot()).isEqualTo(one.snapshot());
    }

    /**
     * G1: one bucket would have granted all that the stripes grant. G2: a denial means that tokens are missing. The
     * tokens that it has less than one bucket come back no later than a full bucket's.
     */
    @RepeatedTest(300)
    void grantsAllTokensAndNeverMoreThanOneBucket(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = Specs.randomSpec(random);
        TokenBucket one = TokenBucket.of(spec, time);
        int stripes = random.nextInt(1, 9);
        StripedBucket striped = new StripedBucket(spec, stripes, time);
        BucketSpec current = spec;
        long few = Specs.upTo(Math.max(spec.capacity() / 300, 1), random);
        for (int i = 0; i < STEPS && time.nanoTime() < LONGEST_RUN; i++) {
            String step = "seed %d, step %d: %s".formatted(run.getCurrentRepetition(), i, spec);
            time.advance(Duration.ofNanos(randomStep(spec, few, random)));
            long cost = random.nextInt(30) > 0 ? few : Specs.upTo(spec.capacity() + 1, random);
            if (random.nextInt(200) == 0) {
                BucketSpec other = spec.withCapacity(random.nextLong(spec.capacity()) + 1);
                one.reconfigure(other);
                striped.reconfigure(other);
                current = other;
            }
            if (striped.tryAcquire(cost, random.nextInt(stripes))) {
                assertThat(one.tryAcquire(cost)).as(step).isTrue();
            } else if (random.nextBoolean()) { // a snapshot gathers all slices
                assertThat(striped.snapshot().available()).as(step).isLessThan(cost);
            }
        }
        assertThat(striped.snapshot().available())
                .isLessThanOrEqualTo(one.snapshot().available());
        TokenBucket empty = TokenBucket.of(current, time);
        assertThat(empty.tryAcquire(current.capacity())).isTrue();
        assertThat(striped.snapshot().resetAfter())
                .isLessThanOrEqualTo(empty.snapshot().resetAfter());
    }

    /** While time stands still nothing comes back and nothing is lost: the stripes make no difference. */
    @RepeatedTest(100)
    void answersAsOneBucketWhileTimeStandsStill(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        BucketSpec spec = BucketSpec.of("7/1d").withCapacity(random.nextLong(1, 3_000));
        TokenBucket one = TokenBucket.of(spec, time);
        int stripes = random.nextInt(1, 9);
        StripedBucket striped = new StripedBucket(spec, stripes, time);
        for (int i = 0; i < STEPS; i++) {
            long cost = random.nextInt(1, random.nextInt(2, 40));
            assertThat(striped.tryAcquire(cost, random.nextInt(stripes)))
                    .as("seed %d, step %d: %s", run.getCurrentRepetition(), i, spec)
                    .isEqualTo(one.tryAcquire(cost));
        }
    }

    private static long randomStep(BucketSpec spec, long few, SplittableRandom random) {
        long full = spec.timeToFull().toNanos();
        double ofFew = (double) full / spec.capacity() * few;
        return switch (random.nextInt(60)) {
            case 0 -> random.nextLong(full + 1);
            case 1 -> Specs.upTo(full, random);
            default -> random.nextInt(3) == 0 ? 0 : (long) (random.nextDouble() * 2.2 * ofFew);
        };
    }
}
