package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * Random calls: a store of values answers to the nanosecond as the store in memory does, since both have one arithmetic.
 * There are two exceptions. Tokens of another spec don't come back, and a full bucket without a value is full under any
 * spec. A call that keeps no token would restore the fraction that a conversion cut off, in memory alone. Runs of 500
 * steps; the number of a run is its seed.
 */
class StoredBucketOracleTests {

    private static final int RUN = 500;

    private record Taken(Answer stored, Answer local) {}

    @Test
    void aStoreOfValuesAnswersAsTheStoreInMemory() {
        for (int seed = 1; seed <= GrantOracle.steps(50_000) / RUN; seed++) {
            run(seed, new SplittableRandom(seed));
        }
    }

    private static void run(int seed, SplittableRandom random) {
        ManualTimeSource time = new ManualTimeSource();
        time.advance(Duration.ofDays(random.nextInt(20_000)).plusNanos(123_000));
        MapBucketStore stored = new MapBucketStore(() -> time.nanoTime() / 1_000);
        BucketStore local = BucketStore.local(time);
        List<BucketSpec> specs = random.nextBoolean() ? Specs.smallSpecs(random) : List.of(Specs.randomSpec(random));
        BucketSpec spec = specs.get(0);
        List<Taken> taken = new ArrayList<>();
        long end = time.nanoTime() + Duration.ofDays(3_650).toNanos(); // ticks in memory last for twelve years
        for (int i = 0; i < RUN && time.nanoTime() < end; i++) {
            String step = "seed %d, step %d, %s".formatted(seed, i, spec);
            pass(spec, time, random);
            boolean isKept = stored.value(charge(spec, 1, Duration.ZERO)) != null; // else it is full under any spec
            if (isKept && random.nextInt(30) == 0) {
                spec = specs.get(random.nextInt(specs.size()));
                taken.clear();
            }
            if (random.nextInt(3) == 0 && !taken.isEmpty()) {
                Taken back = taken.remove(random.nextInt(taken.size()));
                long cost = 1 + random.nextLong(2 * back.stored.charge().cost());
                stored.settle(back.stored, cost);
                local.settle(back.local, cost);
            } else {
                long cost = Specs.upTo(spec.capacity(), random);
                long most = Math.max(5 * Specs.tokenNanos(spec), 1);
                Duration wait = Duration.ofNanos(random.nextBoolean() ? 0 : random.nextLong(most));
                Charge charge = charge(spec, cost, wait);
                Decision decision = stored.reserve(List.of(charge));
                Decision expected = local.reserve(List.of(charge));
                assertThat(numbers(decision)).as(step).isEqualTo(numbers(expected));
                if (decision.allowed()) {
                    taken.add(new Taken(
                            decision.answers().get(0), expected.answers().get(0)));
                }
            }
        }
    }

    private static Charge charge(BucketSpec spec, long cost, Duration wait) {
        return Charge.of(ThrottlePolicy.of("api", spec, "user"), "alice", cost).withMaxWait(wait);
    }

    private static void pass(BucketSpec spec, ManualTimeSource time, SplittableRandom random) {
        long nanos =
                switch (random.nextInt(12)) {
                    case 0, 1, 2 -> random.nextLong(2 * Specs.tokenNanos(spec) + 2_000);
                    case 3 -> random.nextInt(8) == 0 ? spec.timeToFull().toNanos() : 0;
                    case 4 -> Specs.nanosUntilNearBatch(spec, time.nanoTime(), random);
                    default -> 0;
                };
        time.advance(Duration.ofNanos(nanos / 1_000 * 1_000));
    }

    private static List<Object> numbers(Decision decision) {
        return List.of(
                decision.outcome(),
                decision.remaining(),
                decision.retryNanos(),
                decision.waitNanos(),
                decision.nextTokenNanos(),
                decision.resetNanos());
    }
}
