package io.ratelimit.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.lease.ObservedStore;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Calls that cost more than their estimate, on an instance with leases. */
class LeaseDebtTests {

    private static final Duration LEASE = Duration.ofMillis(100);
    private static final ThrottlePolicy POLICY =
            ThrottlePolicy.of("api", BucketSpec.of("4000/1s")).withLease(LEASE);
    private static final Charge CHARGE = Charge.of(POLICY, "", 1);

    private final AtomicLong micros = new AtomicLong(1_795_000_000_000_000L);
    private final ManualTimeSource time = new ManualTimeSource();
    private final RedisKeys keys = TestRedis.keys();
    private final ObservedStore redis = new ObservedStore(new RedisPlace(keys).store(micros::get));
    private final Queue<Runnable> renewals = new ArrayDeque<>();
    private boolean hold;
    private final FailoverBucketStore store = new FailoverBucketStore(
            "Redis",
            redis,
            BucketStore.local(time),
            1,
            policy -> FailureRule.DENY,
            new Deadline(time, Duration.ofSeconds(60)),
            renewal -> {
                if (hold) {
                    renewals.add(renewal);
                } else {
                    renewal.run();
                }
            });

    private Answer take(Charge charge) {
        return store.take(List.of(charge)).answers().get(0);
    }

    /** Returns an answer whose token is one of a lease that has more than the given tokens left. */
    private Answer warmUp(long tokens) {
        Answer taken = take(CHARGE);
        while (store.leased(POLICY) <= tokens) {
            taken = take(CHARGE);
            assertThat(taken.allowed()).isTrue();
        }
        return taken;
    }

    private int allowedOf(int calls) {
        int allowed = 0;
        for (int i = 0; i < calls; i++) {
            allowed += take(CHARGE).allowed() ? 1 : 0;
        }
        return allowed;
    }

    private long missing() {
        byte[] value = TestRedis.shared().connection().sync().get(keys.key(CHARGE));
        RedisTickScale ticks = RedisTickScale.of(POLICY.spec());
        return RedisBucketState.read(value, ticks, micros.get()).missing() / ticks.perToken();
    }

    @Test
    void whileABucketIsInDebtTheInstanceThatSettledGrantsNothing() {
        Answer taken = warmUp(300);
        long leased = store.leased(POLICY);
        long before = missing();

        assertThat(store.settle(taken, 8_001)).isTrue();

        assertThat(store.leased(POLICY)).isZero();
        assertThat(missing()).as("the lease pays its part").isEqualTo(before + 8_000 - leased);
        assertThat(allowedOf(1_000)).isZero();
    }

    @Test
    void aLeasePaysWhatItHasWithoutACallOfRedis() {
        Answer taken = warmUp(300);
        long leased = store.leased(POLICY);
        long before = missing();
        int calls = redis.calls;

        assertThat(store.settle(taken, 101)).isTrue();

        assertThat(redis.calls).isEqualTo(calls);
        assertThat(store.leased(POLICY)).isEqualTo(leased - 100);
        assertThat(missing()).isEqualTo(before);
    }

    /** The first take of a key isn't from a lease. */
    @Test
    void aCallThatRedisGrantedEndsTheLeaseToo() {
        Answer taken = take(CHARGE);
        warmUp(300);

        assertThat(store.settle(taken, 8_001)).isTrue();

        assertThat(store.leased(POLICY)).isZero();
        assertThat(allowedOf(1_000)).isZero();
    }

    @Test
    void aSettlementOnAnotherThreadEndsTheLease() throws Exception {
        Answer taken = warmUp(300);
        Throttlers throttlers = new Throttlers(List.of(POLICY), store, time, decision -> {});
        throttlers.settleLater(taken, 8_001);
        store.awaitSettlements();

        assertThat(allowedOf(1_000)).isZero();
    }

    @Test
    void aLeaseOfAChangedLimitEndsToo() {
        Answer taken = warmUp(300);
        ThrottlePolicy changed = POLICY.withSpec(BucketSpec.of("5000/1s"));
        while (store.leased(changed) <= 300) {
            assertThat(take(Charge.of(changed, "", 1)).allowed()).isTrue();
        }

        assertThat(store.settle(taken, 8_001)).isTrue();

        assertThat(store.leased(changed)).isZero();
        assertThat(take(Charge.of(changed, "", 1)).allowed()).isFalse();
    }

    /** The request was sent before the settlement, and its reply comes later. */
    @Test
    void aRequestForALeaseThatIsUnderWayGrantsNothingAfterADebt() {
        Answer taken = warmUp(300);
        redis.onTheWay = () -> {
            redis.onTheWay = () -> {};
            store.settle(taken, 8_001);
        };
        while (redis.calls == 0 || missing() < 4_000) {
            assertThat(take(CHARGE).allowed()).isTrue();
        }

        assertThat(store.leased(POLICY)).isZero();
        assertThat(allowedOf(1_000)).isZero();
    }

    @Test
    void tokensOfAnEndedLeaseGoBackToRedis() {
        Answer taken = warmUp(300);
        Answer other = take(Charge.of(POLICY, "", 50));
        store.settle(taken, 8_001);
        long before = missing();

        store.settle(other, 0);

        assertThat(store.leased(POLICY)).isZero();
        assertThat(missing()).isBetween(before - 50, before);
    }

    @Test
    void aSettlementThatFailsEndsTheLeaseAllTheSame() {
        Answer taken = warmUp(300);
        redis.down = true;

        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.settle(taken, 8_001));

        assertThat(store.leased(POLICY)).isZero();
        redis.down = false;
        assertThat(store.leased(POLICY)).isZero();
    }

    @Test
    void whenTheDebtIsPaidTheInstanceLeasesAgain() {
        store.settle(warmUp(300), 8_001);
        micros.addAndGet(10_000_000);
        time.advance(Duration.ofSeconds(10));

        warmUp(300);
        assertThat(allowedOf(200)).isEqualTo(200);
    }

    /** Threads that take, settle and return: the bucket pays for all that was granted. */
    @Test
    void manyThreadsWithSettlementsNeverUseMoreThanTheBucketHas() throws Exception {
        FailoverBucketStore shared = new FailoverBucketStore(
                "Redis",
                TestRedis.shared().scriptStore(keys, Duration.ofSeconds(60), false, micros::get),
                BucketStore.local(time),
                1,
                policy -> FailureRule.DENY,
                new Deadline(time, Duration.ofSeconds(60)));
        AtomicLong used = new AtomicLong();
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try {
            for (int i = 0; i < 4; i++) {
                threads.execute(() -> {
                    for (int call = 0; call < 3_000; call++) {
                        Answer taken = shared.take(List.of(CHARGE)).answers().get(0);
                        if (taken.allowed()) {
                            int cost = call % 3;
                            shared.settle(taken, cost);
                            used.addAndGet(cost);
                        }
                    }
                });
            }
            threads.shutdown();
            assertThat(threads.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
        } finally {
            threads.shutdownNow();
        }
        assertThat(used.get()).isBetween(2_000L, 4_000L + 4);
    }
}
