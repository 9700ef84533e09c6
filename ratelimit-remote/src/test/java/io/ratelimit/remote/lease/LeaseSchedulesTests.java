package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.LeasingBucketStore.Grant;
import io.ratelimit.MapBucketStore;
import io.ratelimit.Schedules;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.lease.LeasedBucket.Lease;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Schedules of threads that use the leases of one bucket, while time stands still. */
@Tag("slow")
class LeaseSchedulesTests {

    private static final long CAPACITY = 100;
    private static final int TAKES = Integer.getInteger("ratelimit.fray") == null ? 1_000 : 3;
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of(
                    "api", BucketSpec.of("1/1h").withCapacity(CAPACITY), "user")
            .withLease(Duration.ofSeconds(50));
    private static final Charge CHARGE = Charge.of(POLICY, "alice", 1);

    /** An instance, which leases from a store in memory. Five calls hold tokens. Two are leased, so the next call renews. */
    private static final class Instance {

        private final MapBucketStore store = new MapBucketStore(() -> 0, Duration.ofDays(1));
        private final Leases leases =
                new Leases(() -> 0, store, this::renew, LeaseSchedulesTests::await, Runnable::run);
        private final AtomicLong held = new AtomicLong();
        private final AtomicLong renewals = new AtomicLong();

        Instance() {
            for (int i = 0; i < 5; i++) {
                take();
            }
        }

        Answer take() {
            Decision decision = leases.take(List.of(CHARGE), leases::takeFromStore);
            held.addAndGet(decision.allowed() ? 1 : 0);
            return decision.answers().get(0);
        }

        private void renew(Runnable renewal) {
            renewals.incrementAndGet();
            renewal.run();
        }

        void giveBack(Answer taken) {
            Answer rest = leases.giveBack(taken);
            if (rest != null) {
                store.giveBack(List.of(rest));
            }
            held.decrementAndGet();
        }

        void pay(long tokens) {
            held.addAndGet(leases.pay(CHARGE, tokens));
        }

        /** Returns the tokens that calls hold, that are leased, and that the store has. */
        long all() {
            return held.get() + leases.tokens(POLICY) + store.snapshot(CHARGE).available();
        }
    }

    private static void await(Future<?> request) {
        try {
            request.get();
        } catch (InterruptedException | ExecutionException failed) {
            throw new IllegalStateException(failed);
        }
    }

    /** A lease begins at its end, so a part of a token comes on top. */
    @Test
    void threadsThatRenewALeaseNeitherLoseNorAddAToken() throws Exception {
        Schedules.search(() -> {
            Instance instance = new Instance();
            Schedules.together(
                    () -> {
                        instance.take();
                        instance.take();
                    },
                    () -> instance.giveBack(instance.take()),
                    instance::take);

            assertThat(instance.all()).isBetween(CAPACITY - 1, CAPACITY);
            assertThat(instance.held.get()).isEqualTo(8);
            assertThat(instance.renewals.get()).isPositive();
        });
    }

    @Test
    void aDebtAndADroppedLeaseAddNoToken() throws Exception {
        Schedules.search(() -> {
            Instance instance = new Instance();
            Schedules.together(
                    () -> {
                        instance.take();
                        instance.take();
                    },
                    () -> instance.pay(3),
                    () -> instance.leases.drop(CHARGE));

            assertThat(instance.all()).isLessThanOrEqualTo(CAPACITY);
        });
    }

    @Test
    void threadsThatTakeFromTwoLeasesNeitherLoseNorAddAToken() throws Exception {
        Schedules.search(() -> {
            LeasedBucket bucket = new LeasedBucket(CHARGE, 0);
            bucket.granted(grant(4), 4, false, 0);
            bucket.granted(grant(8), 8, false, 0);
            AtomicLong held = new AtomicLong();
            Schedules.together(
                    () -> takeAndGiveBack(bucket, 10, held),
                    () -> takeAndGiveBack(bucket, 3, held),
                    () -> takeAndGiveBack(bucket, 5, held));

            assertThat(bucket.tokens(0) + held.get()).isEqualTo(12);
        });
    }

    @Test
    void aCallUsesTheRestOfTheEarlierLeaseFirst() {
        long half = POLICY.lease().toNanos() / 2;
        LeasedBucket bucket = new LeasedBucket(CHARGE, 0);
        bucket.granted(grant(4), 4, false, 0);
        bucket.granted(grant(8), 8, false, half);
        assertThat(bucket.take(6, half)).isNotNull();
        assertThat(bucket.tokens(2 * half)).isEqualTo(6);
    }

    private static Grant grant(long tokens) {
        BucketSpec spec = CHARGE.spec();
        BucketSnapshot bucket =
                new BucketSnapshot(spec.capacity(), spec.rate(), spec.capacity(), Duration.ZERO, Duration.ZERO);
        return new Grant(tokens, bucket, 0, cost -> CHARGE);
    }

    /** Takes tokens again and again, and gives them back but for the last time. */
    private static void takeAndGiveBack(LeasedBucket bucket, long cost, AtomicLong held) {
        for (int i = 1; i <= TAKES; i++) {
            Lease lease = bucket.take(cost, 0);
            if (lease != null && i < TAKES) {
                lease.addAndGet(cost);
            } else if (lease != null) {
                held.addAndGet(cost);
            }
        }
    }
}
