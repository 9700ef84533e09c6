package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * Random calls of a bucket, held against the {@link GrantOracle}: waiting, cancelling at any time also long after the
 * tokens were due, and changes of the spec while calls wait. Runs of 1,000 steps; the number of a run is its seed.
 */
class TokenBucketOracleTests {

    private static final int RUN = 1_000;
    private static final int STEPS = GrantOracle.steps(100_000);

    private final ManualTimeSource time = new ManualTimeSource();

    /** A take and its count. */
    private record Taken(Reservation reservation, GrantOracle.Grant grant) {}

    @Test
    void aBucketOfOneSpecAnswersExactlyAndGrantsNoIntervalTooMuch() {
        for (int seed = 1; seed <= STEPS / RUN; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            run(seed, List.of(Specs.smallSpec(random)), random);
        }
    }

    @Test
    void noIntervalIsGrantedTooMuchOverChangesOfTheSpec() {
        for (int seed = 1; seed <= STEPS / RUN; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            run(seed, Specs.smallSpecs(random), random);
        }
    }

    private void run(int seed, List<BucketSpec> specs, SplittableRandom random) {
        BucketSpec spec = specs.get(0);
        TokenBucket bucket = TokenBucket.of(spec, time);
        Map<BucketSpec, Long> ticks = new LinkedHashMap<>();
        specs.forEach(used -> ticks.put(used, TickScale.of(used, 0).price(1)));
        GrantOracle oracle = new GrantOracle(specs, ticks.values(), 1, time.nanoTime());
        List<Taken> taken = new ArrayList<>();
        for (int i = 0; i < RUN; i++) {
            String step = "seed %d, step %d, %s".formatted(seed, i, spec);
            pass(spec, random);
            int action = random.nextInt(20);
            if (action == 0) {
                spec = specs.get(random.nextInt(specs.size()));
                bucket.reconfigure(spec);
                oracle.use(spec, time.nanoTime());
            } else if (action < 8 && !taken.isEmpty()) {
                int last = random.nextInt(Math.min(taken.size(), random.nextInt(4) == 0 ? RUN : 20));
                Taken cancelled = taken.get(taken.size() - 1 - last);
                long before = bucket.state().missing(time.nanoTime());
                cancelled.reservation.cancel();
                long back = before - bucket.state().missing(time.nanoTime());
                oracle.returned(cancelled.grant, back, ticks.get(spec), time.nanoTime(), step);
            } else {
                reserve(bucket, spec, specs.size() == 1, oracle, taken, random, step);
            }
        }
    }

    private void reserve(
            TokenBucket bucket,
            BucketSpec spec,
            boolean alone,
            GrantOracle oracle,
            List<Taken> taken,
            SplittableRandom random,
            String step) {
        long now = time.nanoTime();
        long cost = random.nextBoolean() ? 1 : 1 + random.nextLong(spec.capacity());
        long wait = Specs.waitNanos(spec, random);
        Reservation reservation = bucket.reserve(cost, Duration.ofNanos(wait));
        Decision decision = reservation.decision();
        if (alone) {
            long exact = oracle.take(spec, cost, now, wait);
            assertThat(decision.allowed()).as(step).isEqualTo(exact <= wait);
            assertThat(decision.allowed() ? decision.waitNanos() : decision.retryNanos())
                    .as(step)
                    .isEqualTo(exact);
        }
        if (decision.allowed()) {
            taken.add(new Taken(reservation, oracle.granted(spec, cost, now, now + decision.waitNanos(), step)));
        }
    }

    private void pass(BucketSpec spec, SplittableRandom random) {
        int kind = random.nextInt(60);
        if (kind < 20) {
            time.advance(Duration.ofNanos(random.nextLong(2 * Specs.tokenNanos(spec) + 2)));
        } else if (kind == 20) {
            time.advance(spec.timeToFull().plusNanos(random.nextInt(3)));
        } else if (kind < 24) {
            time.advance(Duration.ofNanos(Specs.nanosUntilNearBatch(spec, time.nanoTime(), random)));
        }
    }
}
