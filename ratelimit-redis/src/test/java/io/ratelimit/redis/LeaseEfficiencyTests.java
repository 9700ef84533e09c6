package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.lease.ObservedStore;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The price of leases: how many of the calls that one exact bucket allows are allowed by several instances on a real Redis, and
 * how many calls of Redis they make. Calls arrive at random on a clock of the test, which stands still during a call of Redis.
 */
@Tag("slow")
class LeaseEfficiencyTests {

    private final AtomicLong micros = new AtomicLong(1_795_000_000_000_000L);
    private final ManualTimeSource time = new ManualTimeSource();

    /** Instances that share one policy, and an exact bucket for the same calls. */
    private final class Instances {

        private static final int ANY = -1;

        private final SplittableRandom random = new SplittableRandom(7);
        private final Charge charge;
        private final List<ObservedStore> redis;
        private final List<FailoverBucketStore> stores;
        private final BucketStore exact = BucketStore.local(time);
        private double nanosSinceMicros;
        private int maxCost = 1;
        private long granted;
        private long grantedByExactBucket;

        Instances(int count, String rate, Duration lease) {
            charge = Charge.of(ThrottlePolicy.of("api", BucketSpec.of(rate)).withLease(lease), "", 1);
            RedisKeys keys = TestRedis.keys();
            redis = IntStream.range(0, count)
                    .mapToObj(i -> new ObservedStore(new RedisPlace(keys).store(micros::get)))
                    .toList();
            stores = redis.stream().map(this::store).toList();
        }

        private FailoverBucketStore store(ObservedStore redis) {
            return new FailoverBucketStore(
                    "Redis",
                    redis,
                    BucketStore.local(time),
                    1,
                    policy -> FailureRule.DENY,
                    new Deadline(time, Duration.ofSeconds(60)),
                    Runnable::run);
        }

        void callAny(double perSecond, Duration duration) {
            call(ANY, perSecond, duration);
        }

        /** Calls an instance at random moments, on average so many times in a second. */
        void call(int instance, double perSecond, Duration duration) {
            long end = micros.get() + duration.toNanos() / 1_000;
            while (advance(-Math.log1p(-random.nextDouble()) / perSecond) < end) {
                int callee = instance == ANY ? random.nextInt(stores.size()) : instance;
                long cost = maxCost == 1 ? 1 : random.nextInt(1, maxCost + 1);
                granted += take(stores.get(callee), cost);
                grantedByExactBucket += take(exact, cost);
            }
        }

        /** Returns the tokens taken. */
        private long take(BucketStore store, long cost) {
            return store.take(List.of(charge.withCost(cost))).allowed() ? cost : 0;
        }

        private long advance(double seconds) {
            nanosSinceMicros += seconds * 1e9;
            long passed = (long) (nanosSinceMicros / 1_000);
            nanosSinceMicros -= 1_000 * passed;
            time.advance(Duration.ofNanos(1_000 * passed));
            return micros.addAndGet(passed);
        }

        int callsOfRedis() {
            return redis.stream().mapToInt(store -> store.calls).sum();
        }

        /** Returns the granted part of the tokens that one exact bucket grants. */
        double grantedPart() {
            return (double) granted / grantedByExactBucket;
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.95, 2, 10})
    void tenInstancesGrantAlmostWhatOneBucketGrants(double demand) {
        Instances instances = new Instances(10, "2000/1s", Duration.ofMillis(100));
        instances.callAny(demand * 2_000, Duration.ofSeconds(10));
        assertThat(instances.grantedPart()).isBetween(0.98, 1.0);
    }

    @ParameterizedTest
    @CsvSource({"3, 2000, 0.96", "10, 2000, 0.96", "10, 10000, 0.975"})
    void callsOfDifferentCostsAreGrantedAlmostAsByOneBucket(int count, int rate, double least) {
        Instances instances = new Instances(count, rate + "/1s", Duration.ofMillis(100));
        instances.maxCost = 20;
        instances.callAny(2 * rate / 10.5, Duration.ofSeconds(10));
        assertThat(instances.grantedPart()).isBetween(least, 1.0);
    }

    @Test
    void burstsAtOneInstanceAfterAnotherAreGrantedAlmostAsByOneBucket() {
        Instances instances = new Instances(10, "500/1s", Duration.ofMillis(50));
        for (int burst = 0; burst < 10; burst++) {
            instances.call(burst, 2_000, Duration.ofMillis(500));
            instances.advance(3.5);
        }
        assertThat(instances.grantedPart()).isBetween(0.94, 1.0);
    }

    /** The rate is five times the highest traffic. */
    @ParameterizedTest
    @CsvSource({
        "1, 20, 10000", "1, 20, 200000", "1, 100, 10000", "1, 100, 200000",
        "4, 20, 10000", "4, 20, 200000", "4, 100, 10000", "4, 100, 200000"
    })
    void belowTheLimitThereAreTwoCallsOfRedisForEachLeaseAndInstance(int count, int leaseMillis, double perSecond) {
        Instances instances = new Instances(count, "1000000/1s", Duration.ofMillis(leaseMillis));
        instances.callAny(perSecond, Duration.ofMillis(200));
        int before = instances.callsOfRedis();
        instances.callAny(perSecond, Duration.ofMillis(500));
        double leases = 500.0 * count / leaseMillis;
        assertThat(instances.callsOfRedis() - before).isBetween((int) leases, (int) (3 * leases));
        assertThat(instances.grantedPart()).isEqualTo(1);
    }
}
