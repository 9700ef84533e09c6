package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Random calls of the store in memory, held against one {@link GrantOracle} for each key: several keys, fewer buckets
 * than keys, so that keys share overflow buckets and move from them, keys that expire, specs that change between calls, resets,
 * and returns and settlements at any time. Runs of 1,000 steps; the number of a run is its seed. Which keys share a bucket depends on a
 * random hash.
 */
class LocalBucketStoreOracleTests {

    private static final int RUN = 1_000;
    private static final int STEPS = GrantOracle.steps(100_000);
    private static final int KEYS = 5;

    private final ManualTimeSource time = new ManualTimeSource();

    /** Tokens taken for a key, and their count by the oracle of that time. */
    private record Taken(int key, Answer answer, GrantOracle oracle, GrantOracle.Grant grant) {}

    @Test
    void noKeyIsGrantedTooMuchAndOneSpecAnswersExactly() {
        for (int seed = 1; seed <= STEPS / RUN; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            boolean alone = random.nextInt(3) == 0;
            run(seed, alone ? List.of(Specs.smallSpec(random)) : Specs.smallSpecs(random), random);
        }
    }

    private void run(int seed, List<BucketSpec> specs, SplittableRandom random) {
        BucketSpec spec = specs.get(0);
        boolean alone = specs.size() == 1;
        int maxKeys = alone || random.nextBoolean() ? KEYS : KEYS - 2;
        int changes = random.nextBoolean() ? 2 : 20;
        ThrottlePolicy policy = ThrottlePolicy.of("api", spec, "user").withMaxKeys(maxKeys);
        LocalBucketStore store = new LocalBucketStore(time);
        Map<BucketSpec, Long> ticks = new LinkedHashMap<>();
        specs.forEach(used -> ticks.put(used, TickScale.of(used, 0).price(1)));
        Supplier<GrantOracle> full = () -> new GrantOracle(specs, ticks.values(), 1, time.nanoTime());
        List<GrantOracle> oracles = Stream.generate(full).limit(KEYS).collect(Collectors.toCollection(ArrayList::new));
        List<Taken> taken = new ArrayList<>();
        for (int i = 0; i < RUN; i++) {
            String step = "seed %d, step %d, %s".formatted(seed, i, spec);
            pass(spec, random);
            long now = time.nanoTime();
            if (!alone && random.nextInt(changes) == 0) {
                BucketSpec next = specs.get(random.nextInt(specs.size()));
                oracles.forEach(oracle -> oracle.use(next, now));
                spec = next;
            }
            if (random.nextInt(3) == 0 && !taken.isEmpty()) {
                int last = random.nextInt(Math.min(taken.size(), random.nextInt(4) == 0 ? RUN : 20));
                settle(store, taken.remove(taken.size() - 1 - last), spec, random, oracles, step);
                continue;
            }
            int key = random.nextInt(KEYS);
            if (random.nextInt(100) == 0) {
                reset(store, new Charge(policy, spec, "user" + key, 1), () -> oracles.set(key, full.get()));
            }
            long cost = random.nextBoolean() ? 1 : 1 + random.nextLong(spec.capacity());
            long wait = Specs.waitNanos(spec, random);
            Charge charge = new Charge(policy, spec, "user" + key, cost, Duration.ofNanos(wait));
            Decision decision = store.reserve(List.of(charge));
            if (alone) {
                long exact = oracles.get(key).take(spec, cost, now, wait);
                assertThat(decision.allowed()).as(step).isEqualTo(exact <= wait);
                assertThat(decision.allowed() ? decision.waitNanos() : decision.retryNanos())
                        .as(step)
                        .isEqualTo(exact);
            }
            if (decision.allowed()) {
                long due = now + decision.waitNanos();
                GrantOracle oracle = oracles.get(key);
                GrantOracle.Grant grant = oracle.granted(spec, cost, now, due, step);
                taken.add(new Taken(key, decision.answers().get(0), oracle, grant));
            }
        }
    }

    /** Resets a key. It is full then, unless it has no bucket of its own and shares one. */
    private void reset(LocalBucketStore store, Charge charge, Runnable fill) {
        BucketState bucket = store.buckets(charge.policy()).find(charge);
        boolean own = bucket != null && !store.buckets(charge.policy()).isOverflow(bucket);
        store.reset(charge);
        if (own) {
            assertThat(store.snapshot(charge).resetAfter()).isZero();
            fill.run();
        }
    }

    /** Gives all back, or settles at any cost up to three times the capacity more. */
    private void settle(
            LocalBucketStore store,
            Taken taken,
            BucketSpec spec,
            SplittableRandom random,
            List<GrantOracle> oracles,
            String step) {
        long estimate = taken.answer.charge().cost();
        long cost =
                switch (random.nextInt(4)) {
                    case 0 -> estimate + random.nextLong(random.nextBoolean() ? 3 : 3 * spec.capacity());
                    case 1 -> random.nextLong(estimate + 1);
                    default -> -1;
                };
        if (cost > estimate) {
            // A bucket that is full begins under the spec of the take.
            oracles.get(taken.key).use(taken.answer.charge().spec(), time.nanoTime());
            PolicyBuckets buckets = store.buckets(taken.answer.policy());
            BucketState bucket = buckets.bucketToOwe(taken.answer, time.nanoTime());
            long left = bucket.scale().tokensLeft(missing(bucket, time.nanoTime()));
            long more = cost - estimate;
            long owed = buckets.isOverflow(bucket) ? Math.min(left, more) : more;
            assertThat(store.settle(taken.answer, cost)).isTrue();
            oracles.get(taken.key).owed(spec, owed, time.nanoTime(), step);
        } else {
            giveBack(store, taken, cost, oracles.get(taken.key), step);
        }
    }

    private void giveBack(LocalBucketStore store, Taken taken, long cost, GrantOracle present, String step) {
        PolicyBuckets buckets = store.buckets(taken.answer.policy());
        BucketState bucket = buckets.bucketTakenFrom(taken.answer);
        assertThat(taken.oracle == present || bucket == null || buckets.isOverflow(bucket))
                .as("tokens from before a reset don't come back to a bucket of the key, " + step)
                .isTrue();
        long now = time.nanoTime();
        long before = bucket == null ? 0 : missing(bucket, now);
        if (cost < 0) {
            store.giveBack(List.of(taken.answer));
        } else {
            store.settle(taken.answer, cost);
        }
        if (bucket != null) {
            long back = before - missing(bucket, now);
            taken.oracle.returned(taken.grant, back, bucket.scale().price(1), now, step);
        }
    }

    /** Returns 0 for a closed bucket: it was full, and another thread has evicted it. */
    private static long missing(BucketState bucket, long now) {
        return Math.max(bucket.missing(now), 0);
    }

    private void pass(BucketSpec spec, SplittableRandom random) {
        int kind = random.nextInt(120);
        if (kind < 30) {
            time.advance(Duration.ofNanos(random.nextLong(2 * Specs.tokenNanos(spec) + 2)));
        } else if (kind == 30) {
            time.advance(spec.timeToFull().plusNanos(random.nextInt(3)));
        } else if (kind == 31) {
            time.advance(Duration.ofMillis(random.nextLong(200_000)));
        } else if (kind < 38) {
            time.advance(Duration.ofNanos(Specs.nanosUntilNearBatch(spec, time.nanoTime(), random)));
        }
    }
}
