package io.ratelimit.remote.inflight;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.SharedSlots.Request;
import io.ratelimit.SharedSlots.Slot;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.inflight.RegisterStore.CarriedClaim;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;

/**
 * Random histories of a few processes and one store, whose messages are lost, late or overtaken, and of processes that are cut
 * off from the store. The time of this world is virtual.
 */
class RegisterWorldTests {

    private static final Duration TIME_TO_LIVE = Duration.ofSeconds(3);
    private static final Duration STEP = Duration.ofMillis(3);

    private final ManualTimeSource time = new ManualTimeSource();
    private final RegisterModel store = new RegisterModel();
    private SplittableRandom random;
    private double loss;
    private int limit;
    private int granted;

    /** A process with its calls. */
    private final class Instance implements RegisterStore, Registers.Access {

        private final int number;
        private final Registers registers = new Registers(time, this, this, TIME_TO_LIVE);
        private final List<Slot> running = new ArrayList<>();
        private final List<Slot> waiting = new ArrayList<>();
        private long cutUntil;

        Instance(int number) {
            this.number = number;
        }

        private boolean isLost() {
            return time.nanoTime() < cutUntil || random.nextDouble() < loss;
        }

        private long delay() {
            long micros = random.nextInt(10) > 0 ? random.nextLong(2_000) : random.nextLong(300_000);
            return time.nanoTime() + 1_000 * micros;
        }

        @Override
        public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
            CompletableFuture<Reply> result = new CompletableFuture<>();
            if (!isLost()) {
                time.callAt(delay(), () -> {
                    Reply reply = store.set(number, claim, timeToLive.toNanos() / 1_000, time.nanoTime() / 1_000);
                    if (!isLost()) {
                        time.callAt(delay(), () -> result.complete(reply));
                    }
                });
            }
            return result;
        }

        @Override
        public boolean carriesClaims() {
            return true;
        }

        /** A take of tokens, which are short, or which one of the two messages is lost of. */
        @Override
        public Decision take(List<Charge> charges, List<CarriedClaim> claims, Duration timeToLive) {
            CarriedClaim claim = claims.get(0);
            if (isLost()) {
                throw new BackendException("lost");
            }
            if (random.nextInt(3) == 0) {
                claim.withdraw();
                return Decision.of(List.of());
            }
            Reply reply = store.set(number, claim.claim(), timeToLive.toNanos() / 1_000, time.nanoTime() / 1_000);
            if (isLost()) {
                throw new BackendException("lost");
            }
            time.advance(Duration.ofNanos(random.nextLong(2_000_000)));
            claim.replied(reply);
            return Decision.of(List.of());
        }

        /** Takes a slot with tokens, if that is possible. */
        private @Nullable Slot takeWithTokens(Charge charge) {
            Request request = registers.of(charge.policy()).request(charge);
            if (registers.start(List.of(request), true)) {
                List<CarriedClaim> claims = registers.carry(List.of(request));
                try {
                    if (!claims.isEmpty()) {
                        registers.take(List.of(charge), claims);
                    }
                } catch (BackendException lost) {
                    assertThat(request.slot()).isNotNull();
                }
            }
            return request.slot();
        }

        @Override
        public BackendException failure(Throwable failure, long began) {
            return new BackendException("lost", failure);
        }

        @Override
        public CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call) {
            return call.get();
        }

        @Override
        public long timeoutNanos() {
            return Duration.ofMillis(100).toNanos();
        }

        @Override
        public void await(Future<?> decision) {
            for (int i = 0; i < 110 && !decision.isDone(); i++) {
                time.advance(Duration.ofMillis(1));
            }
        }

        @Override
        public int fallback(ThrottlePolicy policy, int limit, boolean congested) {
            return 0;
        }

        private void collect() {
            for (Slot slot : List.copyOf(waiting)) {
                if (slot.outcome() == Outcome.ALLOWED) {
                    waiting.remove(slot);
                    running.add(slot);
                    granted++;
                }
            }
        }

        private void act() {
            Charge charge = Charge.of(ThrottlePolicy.of("exports", BucketSpec.inFlight(limit), "user"), "alice", 1);
            int choice = random.nextInt(100);
            if (choice < 40) {
                Slot slot = choice < 20
                        ? takeWithTokens(charge)
                        : registers.of(charge.policy()).take(charge);
                if (slot != null && slot.outcome() == Outcome.ALLOWED) {
                    running.add(slot);
                    granted++;
                }
            } else if (choice < 50 && waiting.size() < 4) {
                waiting.add(registers.of(charge.policy()).enqueue(charge, () -> limit));
            } else if (choice < 55 && !waiting.isEmpty()) {
                waiting.remove(0).giveUp();
            } else if (choice < 95 && !running.isEmpty()) {
                running.remove(random.nextInt(running.size())).release();
            }
        }

        /** Returns the calls that the store doesn't know of. */
        private int unregistered() {
            RegisterModel.Entry entry = store.registers().get(number);
            boolean isThere = entry != null && entry.deadline() > time.nanoTime() / 1_000;
            return Math.max(0, running.size() - (isThere ? entry.usable() : 0));
        }
    }

    private void run(long seed, boolean cuts) {
        random = new SplittableRandom(seed);
        loss = new double[] {0, .02, .2}[random.nextInt(3)];
        limit = new int[] {1, 2, 5, 40}[random.nextInt(4)];
        List<Instance> instances = new ArrayList<>();
        for (int i = 0; i < 2 + random.nextInt(3); i++) {
            instances.add(new Instance(i));
        }
        for (int step = 0; step < 2_000; step++) {
            Instance instance = instances.get(random.nextInt(instances.size()));
            int before = instance.waiting.size();
            instance.act();
            if (instance.waiting.size() < before) {
                instance.collect();
            }
            if (cuts && random.nextInt(300) == 0) {
                instance.cutUntil = time.nanoTime() + random.nextLong(3 * TIME_TO_LIVE.toNanos());
            }
            time.advance(STEP.multipliedBy(random.nextInt(4)));
            instances.forEach(Instance::collect);
            int calls = instances.stream().mapToInt(each -> each.running.size()).sum();
            int more =
                    cuts ? instances.stream().mapToInt(Instance::unregistered).sum() : 0;
            assertThat(calls).as("seed %d, step %d", seed, step).isLessThanOrEqualTo(limit + more);
        }
        assertThat(granted).as("seed %d", seed).isGreaterThan(20);
        loss = 0;
        for (Instance instance : instances) {
            instance.cutUntil = 0;
            instance.waiting.forEach(Slot::giveUp);
            instance.running.forEach(Slot::release);
        }
        time.advance(TIME_TO_LIVE.multipliedBy(2));
        assertThat(time.waiting()).as("seed %d", seed).isZero();
    }

    @RepeatedTest(30)
    void lostAndLateMessagesNeverLetMoreCallsRun(RepetitionInfo repetition) {
        run(repetition.getCurrentRepetition(), false);
    }

    @RepeatedTest(30)
    void processesThatAreCutOffAddTheirOwnCallsAtMost(RepetitionInfo repetition) {
        run(1_000 + repetition.getCurrentRepetition(), true);
    }
}
