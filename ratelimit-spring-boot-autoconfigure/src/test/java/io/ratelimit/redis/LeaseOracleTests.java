package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketSpec.Refill;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.GrantOracle;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.failover.Deadline;
import io.ratelimit.failover.FailoverBucketStore;
import io.ratelimit.failover.FailoverBucketStore.FailureRule;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Instances with leases on one bucket of a real Redis, held against the {@link GrantOracle}. The clock of each instance is
 * wrong by up to 900 ppm. The number of a history is its seed. With {@code -Dratelimit.test.steps=4000000} there are 20,000
 * histories.
 */
class LeaseOracleTests {

    private static final int HISTORY = 200;
    private static final long START = 1_795_000_000_123_456L;
    private static final long[] PERIODS = {1_000_000, 999_983, 7_000_000, 100_000};

    private final AtomicLong micros = new AtomicLong(START);
    private long leasedGrants;
    private long refundsToLeases;

    private record Taken(FailoverBucketStore store, Answer answer, GrantOracle.Grant grant) {}

    private final class Instance {
        private final ManualTimeSource time = new ManualTimeSource();
        private final long clockMillionths;
        private final ObservedStore redis;
        private final FailoverBucketStore store;
        private ThrottlePolicy policy;
        private long nanosOfMicros;

        Instance(RedisKeys keys, ThrottlePolicy policy, SplittableRandom random) {
            this.policy = policy;
            this.clockMillionths = 1_000_000 - 900 + random.nextInt(1_801);
            Deadline deadline = new Deadline(time, Duration.ofSeconds(60));
            this.redis = new ObservedStore(keys, micros::get);
            this.store = new FailoverBucketStore(
                    "Redis", redis, BucketStore.local(time), 1, any -> FailureRule.DENY, deadline, Runnable::run);
        }

        void advance(long passed) {
            nanosOfMicros += passed * clockMillionths;
            time.advance(Duration.ofNanos(nanosOfMicros / 1_000));
            nanosOfMicros %= 1_000;
        }
    }

    @Test
    void instancesWithLeasesNeverGrantMoreThanOneBucketMay() {
        for (int seed = 1; seed <= GrantOracle.steps(10_000) / HISTORY; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            run(seed, specs(random), random);
        }
        assertThat(leasedGrants).isPositive();
        assertThat(refundsToLeases).isPositive();
    }

    private static List<BucketSpec> specs(SplittableRandom random) {
        BucketSpec first = spec(random);
        boolean alone = random.nextInt(3) > 0;
        Rate faster = new Rate(first.rate().tokens() * 10, first.rate().period());
        return alone
                ? List.of(first)
                : List.of(first, new BucketSpec(faster, first.capacity(), first.refill()), spec(random));
    }

    private static BucketSpec spec(SplittableRandom random) {
        long capacity = new long[] {20, 48, 100, 500}[random.nextInt(4)];
        Duration period = Duration.ofNanos(1_000 * PERIODS[random.nextInt(PERIODS.length)]);
        Refill refill = random.nextInt(4) == 0 ? Refill.INTERVAL : Refill.GREEDY;
        return new BucketSpec(new Rate(1 + random.nextInt((int) capacity), period), capacity, refill);
    }

    private void run(int seed, List<BucketSpec> specs, SplittableRandom random) {
        RedisKeys keys = TestRedis.keys();
        Duration lease = lease(specs, random);
        List<Long> ticks =
                specs.stream().map(spec -> RedisTickScale.of(spec).perToken()).toList();
        GrantOracle oracle = new GrantOracle(specs, ticks, 1_000, 1_000 * micros.get());
        BucketSpec written = specs.get(0);
        ThrottlePolicy first = ThrottlePolicy.of("api", written).withLease(lease);
        List<Instance> instances = IntStream.range(0, 2 + random.nextInt(3))
                .mapToObj(i -> new Instance(keys, first, random))
                .toList();
        List<Taken> taken = new ArrayList<>();
        for (int i = 0; i < HISTORY; i++) {
            String step = "seed %d, step %d, lease %s, specs %s".formatted(seed, i, lease, specs);
            long passed = passed(written, lease, random);
            micros.addAndGet(passed);
            instances.forEach(instance -> instance.advance(passed));
            Instance instance = instances.get(random.nextInt(instances.size()));
            if (random.nextInt(30) == 0) {
                instance.policy = instance.policy.withSpec(specs.get(random.nextInt(specs.size())));
            }
            instance.redis.loseNext = random.nextInt(200) == 0;
            int kind = random.nextInt(12);
            if (kind < 3) {
                int refunds = Math.min(taken.size(), kind == 0 ? 1 + random.nextInt(100) : 1);
                for (int refund = 0; refund < refunds; refund++) {
                    int last = random.nextInt(Math.min(taken.size(), 40));
                    giveBack(taken.remove(taken.size() - 1 - last), keys, oracle, step);
                }
                continue;
            }
            int calls = kind < 8 ? 1 : kind < 11 ? 1 + random.nextInt(30) : 1_000;
            for (Instance caller : calls == 1_000 ? instances : List.of(instance)) {
                for (int call = 0; call < calls; call++) {
                    int granted = taken.size();
                    written = take(caller, written, specs, keys, random, oracle, taken, step);
                    call = calls == 1_000 && taken.size() == granted ? calls : call;
                }
            }
        }
    }

    /** One lease in eight is longer than the start of an application would permit. */
    private static Duration lease(List<BucketSpec> specs, SplittableRandom random) {
        BucketSpec spec = specs.get(0);
        long most = spec.timeToFull().toNanos() / (random.nextInt(8) == 0 ? 1 : 4);
        return Duration.ofNanos(Math.min(1 + most / (1 + random.nextInt(10)), 60_000_000_000L));
    }

    private static long passed(BucketSpec spec, Duration lease, SplittableRandom random) {
        long full = spec.timeToFull().toNanos() / 1_000;
        long leased = lease.toNanos() / 1_000;
        return switch (random.nextInt(12)) {
            case 0 -> random.nextLong(full + 1);
            case 1 -> leased * 998 / 1_000;
            case 2 -> leased / 2;
            case 3 -> leased * 3 / 2;
            case 4, 5, 6 -> random.nextLong(leased / 10 + 1);
            case 7 -> random.nextLong(full / 20 + 1);
            default -> 0;
        };
    }

    private BucketSpec take(
            Instance instance,
            BucketSpec written,
            List<BucketSpec> specs,
            RedisKeys keys,
            SplittableRandom random,
            GrantOracle oracle,
            List<Taken> taken,
            String step) {
        ThrottlePolicy policy = instance.policy;
        BucketSpec spec = policy.spec();
        long now = 1_000 * micros.get();
        oracle.use(spec, now);
        long cost = random.nextInt(5) > 0 ? 1 : 1 + random.nextLong(Math.max(spec.capacity() / 10, 1));
        Charge charge = Charge.of(policy, "", cost);
        if (spec.capacity() > written.capacity()
                && TestRedis.shared().connection().sync().get(keys.of(charge)) == null) {
            oracle.forgotten(written, spec);
            written = spec;
        }
        Decision decision = instance.store.take(List.of(charge));
        if (!decision.allowed()) {
            return written;
        }
        Answer answer = decision.answers().get(0);
        leasedGrants += answer.receipt() instanceof RedisAnswers.Receipt ? 0 : 1;
        taken.add(new Taken(instance.store, answer, oracle.granted(spec, cost, now, now, step)));
        return specOfValue(charge, keys, specs);
    }

    /** Returns the spec of the value in Redis, which a call that a lease decided doesn't change. */
    private BucketSpec specOfValue(Charge charge, RedisKeys keys, List<BucketSpec> specs) {
        RedisTickScale ticks = state(charge, keys).ticks();
        return specs.stream()
                .filter(spec -> RedisTickScale.of(spec).equals(ticks))
                .findFirst()
                .orElseThrow();
    }

    /** Counts what came back: to a lease all tokens, to Redis what it no longer misses. */
    private void giveBack(Taken back, RedisKeys keys, GrantOracle oracle, String step) {
        Charge charge = back.answer.charge();
        long leasedBefore = back.store.leased(charge.policy());
        RedisBucketState before = state(charge, keys);
        back.store.giveBack(List.of(back.answer));
        RedisBucketState after = state(charge, keys);
        long returned = before.missing() - after.missing();
        RedisTickScale ticks = before.ticks();
        if (back.store.leased(charge.policy()) > leasedBefore) {
            refundsToLeases++;
            ticks = RedisTickScale.of(charge.spec());
            returned = ticks.of(charge.cost());
        }
        oracle.returned(back.grant, returned, ticks.perToken(), 1_000 * micros.get(), step);
    }

    private RedisBucketState state(Charge charge, RedisKeys keys) {
        byte[] value = TestRedis.shared().connection().sync().get(keys.of(charge));
        return RedisBucketState.read(value, RedisTickScale.of(charge.spec()), micros.get());
    }
}
