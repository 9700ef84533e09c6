package io.ratelimit.remote.lease;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.MapBucketStore;
import io.ratelimit.Schedules;
import io.ratelimit.ThrottlePolicy;
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

    private static final long CAPACITY = 40;
    private static final ThrottlePolicy POLICY = ThrottlePolicy.of(
                    "api", BucketSpec.of("1/1h").withCapacity(CAPACITY), "user")
            .withLease(Duration.ofSeconds(50));
    private static final Charge CHARGE = Charge.of(POLICY, "alice", 1);

    /** An instance, which leases from a store in memory. The calls before have a lease of three tokens, and hold three. */
    private static final class Instance {

        private final MapBucketStore store = new MapBucketStore(() -> 0, Duration.ofDays(1));
        private final Leases leases =
                new Leases(() -> 0, store, Runnable::run, LeaseSchedulesTests::await, Runnable::run);
        private final AtomicLong held = new AtomicLong();

        Instance() {
            for (int i = 0; i < 3; i++) {
                take();
            }
        }

        Answer take() {
            Decision decision = leases.take(List.of(CHARGE), leases::takeFromStore);
            held.addAndGet(decision.allowed() ? 1 : 0);
            return decision.answers().get(0);
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
            assertThat(instance.held.get()).isEqualTo(6);
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
}
