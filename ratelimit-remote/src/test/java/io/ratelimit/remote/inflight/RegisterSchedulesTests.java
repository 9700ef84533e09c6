package io.ratelimit.remote.inflight;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.Schedules;
import io.ratelimit.SharedSlots;
import io.ratelimit.SharedSlots.Slot;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Schedules of threads of two processes that share one slot. Replies of the store come late, on any thread. */
@Tag("slow")
class RegisterSchedulesTests {

    private static final Charge CHARGE =
            Charge.of(ThrottlePolicy.of("exports", BucketSpec.inFlight(1), "user"), "alice", 1);

    /** A store, and the calls that run. */
    private static final class World {

        private final RegisterModel model = new RegisterModel(Set.of());
        private final AtomicInteger running = new AtomicInteger();
        private final AtomicInteger served = new AtomicInteger();

        private synchronized RegisterStore.Reply set(int process, RegisterStore.Claim claim) {
            return model.set(process, claim, 10_000_000, 0);
        }
    }

    private static final class Process implements RegisterStore, Registers.Access {

        private final World world;
        private final int number;
        private final Queue<Runnable> replies = new ConcurrentLinkedQueue<>();
        private final SharedSlots slots;

        Process(World world, int number) {
            this.world = world;
            this.number = number;
            this.slots = new Registers(new ManualTimeSource(), this, this, Duration.ofSeconds(10)).of(CHARGE.policy());
        }

        @Override
        public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
            CompletableFuture<Reply> reply = new CompletableFuture<>();
            Reply usable = world.set(number, claim);
            replies.add(() -> reply.complete(usable));
            return reply;
        }

        @Override
        public BackendException failure(Throwable failure, long began) {
            return new BackendException("failed", failure);
        }

        @Override
        public CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call) {
            return call.get();
        }

        @Override
        public long timeoutNanos() {
            return Long.MAX_VALUE;
        }

        @Override
        public void await(Future<?> decision) {
            while (!decision.isDone()) {
                reply();
            }
        }

        @Override
        public int fallback(ThrottlePolicy policy, int limit, boolean congested) {
            return 0;
        }

        private void reply() {
            Runnable reply = replies.poll();
            if (reply != null) {
                reply.run();
            }
        }

        void call() {
            end(slots.take(CHARGE));
        }

        void wait(int replies) {
            Slot slot = slots.enqueue(CHARGE, () -> 1);
            for (int i = 0; i < replies; i++) {
                reply();
            }
            slot.giveUp();
            end(slot);
        }

        private void end(Slot slot) {
            if (slot.outcome() == Outcome.ALLOWED) {
                assertThat(world.running.incrementAndGet()).isOne();
                world.served.incrementAndGet();
                world.running.decrementAndGet();
                slot.release();
            }
        }
    }

    @Test
    void oneCallRunsAtATimeAndEachSlotIsReleased() throws Exception {
        Schedules.search(() -> {
            World world = new World();
            Process one = new Process(world, 1);
            Process other = new Process(world, 2);
            Schedules.together(
                    () -> {
                        one.call();
                        one.call();
                    },
                    () -> one.wait(1),
                    other::call);

            assertThat(world.served.get()).isPositive();
            assertThat(one.slots.held() + other.slots.held()).isZero();
        });
    }
}
