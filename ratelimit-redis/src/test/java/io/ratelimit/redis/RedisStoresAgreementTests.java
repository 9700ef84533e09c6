package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.Specs;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Random calls under random specs of the whole domain: doubles in Lua, longs in its model and the core count the same. */
@Tag("slow")
class RedisStoresAgreementTests {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final long HOUR_MICROS = 3_600_000_000L;

    private final AtomicLong micros = new AtomicLong(1_795_000_000_123_456L);
    private final RedisKeys keys = TestRedis.keys();
    private final BucketStore script = TestRedis.shared().scriptStore(keys, TIMEOUT, false, micros::get);
    private final ScriptModel model = new ScriptModel(keys, false);

    @RepeatedTest(100)
    void theScriptAnswersAndStoresWhatItsModelDoes(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        List<BucketSpec> specs = Stream.generate(() -> Specs.randomSpec(random))
                .limit(1 + random.nextInt(3))
                .toList();
        BucketSpec spec = specs.get(0);
        List<Answer> taken = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            String step = "seed %d, step %d, %s".formatted(run.getCurrentRepetition(), i, spec);
            pass(spec, random);
            spec = random.nextInt(8) == 0 ? specs.get(random.nextInt(specs.size())) : spec;
            if (random.nextInt(4) == 0 && !taken.isEmpty()) {
                Answer back = taken.remove(random.nextInt(taken.size()));
                if (random.nextBoolean()) {
                    script.giveBack(List.of(back));
                    model.giveBack(List.of(back), micros.get());
                } else {
                    long cost = actualCost(back, Throttlers.MAX_SETTLED_COST, random);
                    script.settle(back, cost);
                    model.settle(back, cost, micros.get());
                }
            } else {
                List<Charge> charges = charges(spec, random);
                boolean ahead = random.nextBoolean();
                Decision decision = ahead ? script.reserve(charges) : script.take(charges);
                assertThat(model.take(charges, ahead, micros.get())).as(step).isEqualTo(decision);
                taken.addAll(decision.allowed() ? decision.answers() : List.of());
            }
            assertSameIsKept(step, spec);
        }
    }

    /** Each call has another spec, and each conversion leaves a fraction of a token. */
    @Test
    void specsWithBatchesThatTakeTurnsLoseNoToken() {
        micros.set(498_611 * HOUR_MICROS);
        List<Charge> charges = Stream.of("100/1h", "117/1h")
                .map(rate -> new BucketSpec(Rate.of(rate), 1_000, BucketSpec.Refill.INTERVAL))
                .map(spec -> Charge.of(ThrottlePolicy.of("api", spec, "user"), "alice", 1))
                .toList();
        assertThat(takes(charges.get(0).withCost(900))).isTrue();
        for (int i = 0; i < 24 * 100; i++) {
            assertThat(takes(charges.get(i % 2))).as("call %d", i).isTrue();
            micros.addAndGet(HOUR_MICROS / 100);
        }
        assertThat(takes(charges.get(0).withCost(100 + 24 * (100 + 117) / 2 - 24 * 100)))
                .isTrue();
        assertThat(takes(charges.get(0))).isFalse();
    }

    private boolean takes(Charge charge) {
        Decision decision = script.take(List.of(charge));
        assertThat(model.take(List.of(charge), false, micros.get())).isEqualTo(decision);
        return decision.allowed();
    }

    private void pass(BucketSpec spec, SplittableRandom random) {
        if (random.nextInt(3) == 0) {
            micros.addAndGet(Specs.upTo(spec.timeToFull().toNanos() / 1_000 + 1, random));
        } else if (random.nextInt(20) == 0) {
            micros.addAndGet(-Specs.upTo(random.nextBoolean() ? 1_000_000 : 1_000_000_000, random));
        }
    }

    private static List<Charge> charges(BucketSpec spec, SplittableRandom random) {
        ThrottlePolicy policy = ThrottlePolicy.of("api", spec, "user");
        return Stream.generate(() -> Charge.of(policy, "user" + random.nextInt(2), cost(spec, random))
                        .withMaxWait(maxWait(random)))
                .limit(1 + random.nextInt(3))
                .toList();
    }

    private static long cost(BucketSpec spec, SplittableRandom random) {
        return Math.max(Specs.upTo(spec.capacity(), random) + random.nextInt(3) - 1, 1);
    }

    private static Duration maxWait(SplittableRandom random) {
        return random.nextBoolean()
                ? Duration.ZERO
                : Duration.ofNanos(Specs.upTo(Duration.ofDays(365).toNanos(), random));
    }

    private static long actualCost(Answer taken, long most, SplittableRandom random) {
        long estimate = taken.charge().cost();
        return random.nextBoolean()
                ? random.nextLong(estimate + 1)
                : Math.min(estimate + Specs.upTo(most, random), Throttlers.MAX_SETTLED_COST);
    }

    private void assertSameIsKept(String step, BucketSpec spec) {
        for (String user : List.of("user0", "user1")) {
            Charge charge = Charge.of(ThrottlePolicy.of("api", spec, "user"), user, 1);
            byte[] value = TestRedis.shared().connection().sync().get(keys.key(charge));
            assertThat(model.value(charge)).as(step).isEqualTo(value);
            if (value != null) {
                assertNumbersAreExact(step, KeptValue.text(value));
                assertThat(TestRedis.shared().connection().sync().pttl(keys.key(charge)))
                        .as(step)
                        .isPositive();
            }
            assertThat(model.snapshot(charge, micros.get())).as(step).isEqualTo(script.snapshot(charge));
        }
    }

    private static void assertNumbersAreExact(String step, String value) {
        for (String number : value.replaceAll("~| !", "").split("[ /]")) {
            assertThat(Math.abs(Long.parseLong(number))).as(step).isBetween(0L, RedisTickScale.MAX_TICKS);
        }
    }

    /** Times of the core in nanoseconds are rounded up to a microsecond. */
    @RepeatedTest(100)
    void agreesWithTheBucketsInMemoryIfBothAreExact(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        micros.set(0);
        ManualTimeSource time = new ManualTimeSource();
        BucketStore local = BucketStore.local(time);
        BucketSpec spec = exactSpec(local, random);
        List<List<Answer>> taken = new ArrayList<>();
        for (int i = 0; i < 80; i++) {
            String step = "seed %d, step %d, %s".formatted(run.getCurrentRepetition(), i, spec);
            long before = micros.get();
            pass(spec, random);
            micros.set(Math.max(micros.get(), before));
            time.advance(Duration.ofNanos(1_000 * (micros.get() - before)));
            if (random.nextInt(3) == 0 && !taken.isEmpty()) {
                List<Answer> back = taken.remove(random.nextInt(taken.size()));
                if (random.nextBoolean()) {
                    local.giveBack(back.subList(0, 1));
                    script.giveBack(back.subList(1, 2));
                } else {
                    long most = RedisTickScale.of(spec).maxWait().toNanos() / (Specs.tokenNanos(spec) + 1);
                    long cost = actualCost(back.get(0), Math.min(most / 100 + 1, spec.capacity()), random);
                    local.settle(back.get(0), cost);
                    script.settle(back.get(1), cost);
                }
            } else {
                List<Charge> charges = List.of(charges(spec, random).get(0).withMaxWait(shortWait(spec, random)));
                boolean ahead = random.nextBoolean();
                Decision here = ahead ? local.reserve(charges) : local.take(charges);
                Decision there = ahead ? script.reserve(charges) : script.take(charges);
                assertThat(numbers(there)).as(step).isEqualTo(inMicros(here));
                if (here.allowed()) {
                    taken.add(List.of(here.answers().get(0), there.answers().get(0)));
                }
            }
        }
    }

    private BucketSpec exactSpec(BucketStore local, SplittableRandom random) {
        while (true) {
            BucketSpec spec = Specs.randomSpec(random);
            Charge charge = Charge.of(ThrottlePolicy.of("any", spec, "user"), "nobody", 1);
            if (RedisTickScale.of(spec).rate(spec).equals(spec.rate())
                    && RedisTickScale.of(spec).stepMicros() != 1_000
                    && local.snapshot(charge).rate().equals(spec.rate())) {
                return spec;
            }
        }
    }

    private static Duration shortWait(BucketSpec spec, SplittableRandom random) {
        long most = Math.min(
                RedisTickScale.of(spec).maxWait().toNanos(),
                2 * spec.timeToFull().toNanos());
        return random.nextBoolean() ? Duration.ZERO : Duration.ofNanos(1_000 * Specs.upTo(most / 1_000, random));
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

    private static List<Object> inMicros(Decision decision) {
        return List.of(
                decision.outcome(),
                decision.remaining(),
                inMicros(decision.retryNanos()),
                inMicros(decision.waitNanos()),
                inMicros(decision.nextTokenNanos()),
                inMicros(decision.resetNanos()));
    }

    private static long inMicros(long nanos) {
        return (nanos + 999) / 1_000 * 1_000;
    }
}
