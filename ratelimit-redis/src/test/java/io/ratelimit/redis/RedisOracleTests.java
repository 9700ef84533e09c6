package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.KeyValue;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.LeasingBucketStore.LeaseRequest;
import io.ratelimit.Rate;
import io.ratelimit.Specs;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.TimeSource;
import io.ratelimit.redis.RedisScript.ScriptReply;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * The Java arithmetic of the stores in Redis, held against the {@link GrantOracle}; and the script on a real server, held
 * against the Java arithmetic, reply by reply and value by value. The number of a run is its seed. With
 * {@code -Dratelimit.test.steps=1000000} each test makes so many steps.
 */
class RedisOracleTests {

    private static final int RUN = 1_000;
    private static final int SCRIPT_RUN = 250;
    private static final int THREADS = 16;
    private static final long START = 1_795_000_000_123_456L;
    private static final List<String> USERS = List.of("user0", "user1");

    /** Tokens taken, and their count. */
    private record Taken(Answer answer, GrantOracle.Grant grant) {}

    @Test
    void noBucketGrantsTooMuchAndOneSpecAnswersExactly() {
        for (int seed = 1; seed <= GrantOracle.steps(50_000) / RUN; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            boolean alone = random.nextInt(3) == 0;
            run(seed, alone ? List.of(Specs.smallSpec(random)) : Specs.smallSpecs(random), random);
        }
    }

    private static void run(int seed, List<BucketSpec> specs, SplittableRandom random) {
        BucketSpec spec = specs.get(0);
        boolean alone = specs.size() == 1;
        int changes = random.nextBoolean() ? 2 : 20;
        Map<BucketSpec, Long> ticks = new LinkedHashMap<>();
        specs.forEach(used -> ticks.put(used, RedisTickScale.of(used).perToken()));
        ScriptModel redis = new ScriptModel(new RedisKeys("oracle", ""), true);
        long micros = START;
        GrantOracle oracle = new GrantOracle(specs, ticks.values(), 1_000, 1_000 * micros);
        BucketSpec written = spec;
        List<Taken> taken = new ArrayList<>();
        for (int i = 0; i < RUN; i++) {
            String step = "seed %d, step %d, %s".formatted(seed, i, spec);
            micros += passed(spec, micros, random);
            spec = random.nextInt(changes) == 0 ? specs.get(random.nextInt(specs.size())) : spec;
            long now = 1_000 * micros;
            if (random.nextInt(3) == 0 && !taken.isEmpty()) {
                int last = random.nextInt(Math.min(taken.size(), random.nextInt(4) == 0 ? RUN : 20));
                Taken back = taken.remove(taken.size() - 1 - last);
                RedisBucketState before = redis.bucket(back.answer.charge(), micros);
                long cost = actualCost(back.answer, random);
                long owed = cost - back.answer.charge().cost();
                if (owed > 0) {
                    BucketSpec begun = back.answer.charge().spec();
                    oracle.use(begun, now);
                    if (redis.isForgotten(back.answer.charge(), micros)) {
                        oracle.forgotten(written, begun, now);
                        written = begun;
                    }
                    redis.settle(back.answer, cost, micros);
                    oracle.owed(spec, owed, now, step);
                    continue;
                } else if (cost < 0) {
                    redis.giveBack(List.of(back.answer), micros);
                } else {
                    redis.settle(back.answer, cost, micros);
                }
                long after = redis.bucket(back.answer.charge(), micros).missing();
                oracle.returned(
                        back.grant, before.missing() - after, before.ticks().perToken(), now, step);
                continue;
            }
            oracle.use(spec, now);
            boolean forgotten = redis.isForgotten(charge(spec, "user", 1, Duration.ZERO), micros);
            if (forgotten && oracle.forgotten(written, spec, now)) {
                written = spec;
            }
            long cost = random.nextBoolean() ? 1 : 1 + random.nextLong(spec.capacity());
            long wait = Specs.waitNanos(spec, random) / 1_000 * 1_000;
            Charge charge = charge(spec, "user", cost, Duration.ofNanos(wait));
            Decision decision = redis.take(List.of(charge), true, micros);
            if (alone) {
                long exact = oracle.take(spec, cost, now, wait);
                assertThat(decision.allowed()).as(step).isEqualTo(exact <= wait);
                assertThat(decision.allowed() ? decision.waitNanos() : decision.retryNanos())
                        .as(step)
                        .isEqualTo(exact);
            }
            if (decision.allowed()) {
                written = spec;
                long due = now + decision.waitNanos();
                taken.add(new Taken(decision.answers().get(0), oracle.granted(spec, cost, now, due, step)));
            }
        }
    }

    /** Returns a cost up to three times the capacity above the estimate; often -1, for a call that is given back. */
    private static long actualCost(Answer taken, SplittableRandom random) {
        long estimate = taken.charge().cost();
        long capacity = taken.charge().spec().capacity();
        return switch (random.nextInt(4)) {
            case 0 -> estimate + random.nextLong(random.nextBoolean() ? 3 : 3 * capacity);
            case 1 -> random.nextLong(estimate + 1);
            default -> -1;
        };
    }

    private static Charge charge(BucketSpec spec, String key, long cost, Duration maxWait) {
        return Charge.of(ThrottlePolicy.of("api", spec, "user"), key, cost).withMaxWait(maxWait);
    }

    private static long passed(BucketSpec spec, long micros, SplittableRandom random) {
        int kind = random.nextInt(60);
        if (kind < 3) {
            return Specs.nanosUntilNearBatch(spec, 1_000 * micros, random) / 1_000;
        }
        if (kind < 20) {
            return random.nextLong(Specs.tokenNanos(spec) / 500 + 2);
        }
        return kind == 20 ? spec.timeToFull().toNanos() / 1_000 + random.nextInt(3) : 0;
    }

    @Test
    void theScriptAnswersAndKeepsWhatTheJavaArithmeticDoes() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Future<?>> runs = new ArrayList<>();
            for (int seed = 1; seed <= GrantOracle.steps(2_000) / SCRIPT_RUN; seed++) {
                int number = seed;
                runs.add(threads.submit(() -> compare(number)));
            }
            for (Future<?> run : runs) {
                run.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private static void compare(int seed) {
        var random = new SplittableRandom(seed);
        List<BucketSpec> specs = random.nextBoolean()
                ? Specs.smallSpecs(random)
                : Stream.generate(() -> Specs.randomSpec(random))
                        .limit(1 + random.nextInt(3))
                        .toList();
        RedisKeys keys = TestRedis.keys();
        AtomicLong micros = new AtomicLong(START);
        RedisScriptBucketStore script = script(keys, micros);
        ScriptModel java = new ScriptModel(keys, false);
        BucketSpec spec = specs.get(0);
        script.take(List.of(charge(spec, "loads the script", 1, Duration.ZERO)));
        boolean leases = random.nextBoolean();
        List<Answer> taken = new ArrayList<>();
        for (int i = 0; i < SCRIPT_RUN; i++) {
            String step = "seed %d, step %d, %s".formatted(seed, i, spec);
            micros.addAndGet(passed(spec, micros.get(), random));
            spec = random.nextInt(8) == 0 ? specs.get(random.nextInt(specs.size())) : spec;
            if (random.nextInt(3) == 0 && !taken.isEmpty()) {
                Answer back = taken.remove(random.nextInt(taken.size()));
                long cost = actualCost(back, random);
                if (cost < 0) {
                    script.giveBack(List.of(back));
                    java.giveBack(List.of(back), micros.get());
                } else {
                    script.settle(back, cost);
                    java.settle(back, cost, micros.get());
                }
            } else if (random.nextInt(8) == 0) {
                Charge charge = charges(spec, random).get(0).withMaxWait(Duration.ZERO);
                ScriptCalls same = script.script();
                int times = 1 + random.nextInt(6);
                ScriptReply reply = same.startTakes(charge, times).join();
                for (int place = 0; place < reply.decided(times); place++) {
                    Decision decision = java.take(List.of(charge), false, micros.get());
                    assertThat(same.answer(charge, place, reply))
                            .as(step)
                            .isEqualTo(decision.answers().get(0));
                    taken.addAll(decision.taken());
                }
            } else if (leases && random.nextInt(4) == 0) {
                Charge charge = leased(charges(spec, random).get(0), random);
                script.lease(new LeaseRequest(charge, charge.cost()));
                java.setValue(charge, TestRedis.shared().connection().sync().get(keys.key(charge)));
            } else {
                List<Charge> charges = charges(spec, random);
                boolean ahead = random.nextBoolean();
                Decision decision = ahead ? script.reserve(charges) : script.take(charges);
                assertThat(decision).as(step).isEqualTo(java.take(charges, ahead, micros.get()));
                taken.addAll(decision.allowed() ? decision.answers() : List.of());
            }
            assertSameValues(keys, java, spec, step);
        }
    }

    private static Charge leased(Charge charge, SplittableRandom random) {
        long longest = charge.spec().timeToFull().toNanos() / (1 << random.nextInt(4));
        Duration lease = Duration.ofNanos(1 + random.nextLong(Math.max(Math.min(longest, 60_000_000_000L), 1)));
        return Charge.of(charge.policy().withLease(lease), charge.key(), charge.cost());
    }

    private static RedisScriptBucketStore script(RedisKeys keys, AtomicLong micros) {
        return new RedisScriptBucketStore(
                TestRedis.shared().connection()::async,
                keys,
                TestRedis.deadline(Duration.ofSeconds(60)),
                TestRedis.FAILURES,
                false,
                micros::get,
                TimeSource.system());
    }

    private static List<Charge> charges(BucketSpec spec, SplittableRandom random) {
        return Stream.generate(() -> {
                    long wait = random.nextBoolean() ? 0 : Specs.upTo(10 * Specs.tokenNanos(spec) + 1, random);
                    long cost = Specs.upTo(spec.capacity(), random) + random.nextInt(2);
                    return charge(spec, USERS.get(random.nextInt(2)), cost, Duration.ofNanos(wait));
                })
                .limit(1 + random.nextInt(3))
                .toList();
    }

    private static void assertSameValues(RedisKeys keys, ScriptModel java, BucketSpec spec, String step) {
        List<Charge> charges =
                USERS.stream().map(user -> charge(spec, user, 1, Duration.ZERO)).toList();
        List<KeyValue<byte[], byte[]>> values =
                TestRedis.shared().connection().sync().mget(keys.key(charges.get(0)), keys.key(charges.get(1)));
        for (int i = 0; i < values.size(); i++) {
            assertThat(values.get(i).getValueOrElse(null)).as(step).isEqualTo(java.value(charges.get(i)));
        }
    }

    /** Two instances of a rolling deployment: whichever call is denied, the tokens of time are not lost. */
    @Test
    void aBucketThatGreedyAndIntervalInstancesAskInTurnRefills() {
        RedisKeys keys = TestRedis.keys();
        AtomicLong micros = new AtomicLong(START);
        BucketStore one = script(keys, micros);
        BucketStore other = script(keys, micros);
        BucketSpec greedy = BucketSpec.of("6/1h");
        BucketSpec interval = new BucketSpec(Rate.of("6/1h"), 6, Refill.INTERVAL);
        long granted = 0;
        for (int minute = 0; minute < 600; minute++) {
            boolean even = minute % 2 == 0;
            Charge charge = charge(even ? greedy : interval, "alice", 1, Duration.ZERO);
            granted += (even ? one : other).take(List.of(charge)).allowed() ? 1 : 0;
            micros.addAndGet(60_000_000);
        }
        assertThat(granted).isBetween(50L, 6 + 6 * 10L + 6);
    }

    /** Greedy refill drains the bucket just before each batch of interval refill, and the batch just after. */
    @Test
    void theRatesOfInstancesThatTakeTurnsDoNotAddUp() {
        RedisKeys keys = TestRedis.keys();
        AtomicLong micros = new AtomicLong();
        BucketStore script = script(keys, micros);
        ScriptModel java = new ScriptModel(keys, false);
        BucketSpec greedy = BucketSpec.of("10/1m");
        BucketSpec interval = greedy.withRefill(Refill.INTERVAL);
        long granted = 0;
        for (int period = 0; period < 30; period++) {
            for (BucketSpec spec : List.of(interval, greedy)) {
                micros.set(START - START % 60_000_000 + 60_000_000L * period + (spec == greedy ? 59_999_999 : 0));
                boolean allowed = true;
                while (allowed) {
                    List<Charge> charges = List.of(charge(spec, "user0", 1, Duration.ZERO));
                    Decision decision = script.take(charges);
                    assertThat(java.take(charges, false, micros.get())).isEqualTo(decision);
                    allowed = decision.allowed();
                    granted += allowed ? 1 : 0;
                    assertSameValues(keys, java, spec, "period " + period);
                }
            }
        }
        assertThat(granted).isBetween(30 * 5L, 10 + 30 * 10L + 10);
    }

    /** The tokens are kept; what counts as earned under the new spec is taken off the next batch. */
    @Test
    void aChangeToIntervalRefillKeepsTheTokens() {
        AtomicLong micros = new AtomicLong(START - START % 60_000_000 + 30_000_000);
        BucketStore script = script(TestRedis.keys(), micros);
        BucketSpec greedy = BucketSpec.of("10/1m");
        Charge before = charge(greedy, "user0", 3, Duration.ZERO);
        Charge after = charge(greedy.withRefill(Refill.INTERVAL), "user0", 1, Duration.ZERO);
        assertThat(script.take(List.of(before)).allowed()).isTrue();
        assertThat(script.snapshot(after).available()).isEqualTo(7);
        assertThat(script.take(List.of(after)).remaining()).isEqualTo(6);
        micros.addAndGet(30_000_000);
        assertThat(script.take(List.of(after)).remaining()).isEqualTo(9);
    }

    /** The same as in {@code LateReturnsTests}, on Redis. */
    @Test
    void aSlowerSpecGrantsNoReturnedTokensBeforeTheyWouldHaveCome() {
        RedisKeys keys = TestRedis.keys();
        AtomicLong micros = new AtomicLong(START);
        BucketStore script = script(keys, micros);
        ScriptModel java = new ScriptModel(keys, false);
        BucketSpec fast = BucketSpec.of("10/1s");
        BucketSpec slow = BucketSpec.of("1/1h").withCapacity(10);
        List<Answer> first = List.of();
        for (long cost : new long[] {10, 8, 2}) {
            List<Charge> charges = List.of(charge(fast, "user0", cost, Duration.ofSeconds(9)));
            Decision decision = script.reserve(charges);
            assertThat(java.take(charges, true, micros.get())).isEqualTo(decision);
            assertThat(decision.allowed()).isTrue();
            first = cost == 8 ? decision.answers() : first;
        }
        script.giveBack(first);
        java.giveBack(first, micros.get());
        List<Charge> charges = List.of(charge(slow, "user0", 1, Duration.ZERO));
        Decision decision = script.take(charges);
        assertThat(java.take(charges, false, micros.get())).isEqualTo(decision);
        assertThat(decision.retryNanos()).isGreaterThan(Duration.ofHours(1).toNanos());
    }

    /** Its text in the value is shorter than a number. */
    @Test
    void aBucketOfTheShortestSpecIsAnswered() {
        BucketStore script = script(TestRedis.keys(), new AtomicLong(START));
        BucketSpec spec = BucketSpec.of("1000000/1s").withCapacity(5);
        List<Charge> both = List.of(charge(spec, "user0", 4, Duration.ZERO), charge(spec, "user1", 1, Duration.ZERO));
        assertThat(script.take(both).remaining()).isEqualTo(1);
        assertThat(script.take(both.subList(0, 1)).allowed()).isFalse();
        assertThat(script.take(both.subList(1, 2)).remaining()).isEqualTo(3);
    }
}
