package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Schedules of the store in memory and of both queues, in which time stands still. */
@Tag("slow")
class SchedulesTests {

    private static final ThrottlePolicy USER = ThrottlePolicy.of("user", BucketSpec.of("2/1h"), "user");
    private static final ThrottlePolicy ALL = ThrottlePolicy.of("all", BucketSpec.of("3/1h"));

    private static Charge user(long cost) {
        return Charge.of(USER, "alice", cost);
    }

    private static Charge all(long cost) {
        return Charge.of(ALL, "", cost);
    }

    @Test
    void aStoreNeitherLosesNorAddsATokenOfTwoBuckets() throws Exception {
        Schedules.search(() -> {
            LocalBucketStore store = new LocalBucketStore(() -> 0);
            AtomicLong held = new AtomicLong();
            Schedules.together(
                    () -> {
                        Decision first = store.take(List.of(user(1), all(1)));
                        Decision second = store.take(List.of(user(1), all(1)));
                        store.giveBack(first.taken());
                        held.addAndGet(second.allowed() ? 1 : 0);
                    },
                    () -> held.addAndGet(store.take(List.of(all(2), user(2))).allowed() ? 2 : 0));

            assertThat(store.snapshot(user(1)).available()).isEqualTo(2 - held.get());
            assertThat(store.snapshot(all(1)).available()).isEqualTo(3 - held.get());
        });
    }

    @Test
    void tokensTakenBeforeAResetDoNotComeBackAfterIt() throws Exception {
        Schedules.search(() -> {
            LocalBucketStore store = new LocalBucketStore(() -> 0);
            AtomicLong held = new AtomicLong();
            Answer before = store.take(List.of(user(2))).answers().get(0);
            Schedules.together(() -> store.giveBack(List.of(before)), () -> {
                store.reset(user(1));
                held.addAndGet(store.take(List.of(user(1))).allowed() ? 1 : 0);
            });

            assertThat(held.get()).isOne();
            assertThat(store.snapshot(user(1)).available()).isOne();
        });
    }

    @Test
    void aSlotGoesToTheFirstThatWaitsAndIsNeverLost() throws Exception {
        Schedules.search(() -> {
            PolicySlots slots = new PolicySlots();
            KeySlots held = slots.take("alice", 1);
            KeySlots.Waiter[] waiters = new KeySlots.Waiter[2];
            Schedules.together(
                    () -> waiters[0] = slots.enqueue("alice", () -> 1),
                    () -> {
                        waiters[1] = slots.enqueue("alice", () -> 1);
                        waiters[1].giveUp();
                    },
                    () -> slots.release(held));

            KeySlots second = waiters[1].slots();
            if (second != null) {
                assertThat(waiters[0].slots()).isNull();
                slots.release(second);
            }
            KeySlots first = waiters[0].slots();
            assertThat(first).isNotNull();
            slots.release(first);
            assertThat(slots.held()).isZero();
        });
    }

    @Test
    void callsWaitForTurnsOfTheirOwnAndNeverMoreThanTheQueueHolds() throws Exception {
        ThrottlePolicy policy = ThrottlePolicy.of("api", BucketSpec.of("1/1s")).withQueueLimit(1);
        Schedules.search(() -> {
            Turns turns = new Turns();
            Throttlers throttlers = Throttlers.local(List.of(policy), turns);
            AtomicInteger allowed = new AtomicInteger();
            Schedules.Work call = () -> {
                Decision decision = throttlers.get("api").forKey().acquire(1, Duration.ofMinutes(1));
                allowed.addAndGet(decision.allowed() ? 1 : 0);
            };
            Schedules.together(call, call, call);

            assertThat(allowed.get()).isEqualTo(1 + turns.taken.size()).isGreaterThan(1);
            assertThat(throttlers.waiting("api")).isZero();
        });
    }

    /** A clock that stands still and lets nobody wait, but records for which moments calls would. */
    private static final class Turns implements TimeSource {

        private final Set<Long> taken = new ConcurrentSkipListSet<>();
        private final AtomicInteger waiting = new AtomicInteger();

        @Override
        public long nanoTime() {
            return 0;
        }

        @Override
        public void parkUntil(long nanos) {
            assertThat(waiting.incrementAndGet()).isOne();
            assertThat(taken.add(nanos)).isTrue();
            waiting.decrementAndGet();
        }
    }
}
