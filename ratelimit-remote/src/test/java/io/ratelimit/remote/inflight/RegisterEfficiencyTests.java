package io.ratelimit.remote.inflight;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BackendException;
import io.ratelimit.BucketSpec;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.SharedSlots.Slot;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.inflight.RegisterStore.Claim;
import io.ratelimit.remote.inflight.RegisterStore.Reply;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The price of registers: how many calls of the store four instances make, and how many requests they reject although a slot was
 * free. Requests arrive at random on a virtual clock, which stands still during a call of the store.
 */
class RegisterEfficiencyTests {

    private static final int SLOTS = 100;
    private static final Duration LENGTH = Duration.ofMillis(20);
    private static final Charge CHARGE = Charge.of(ThrottlePolicy.of("hot", BucketSpec.inFlight(SLOTS)), "", 1);

    private final ManualTimeSource time = new ManualTimeSource();
    private final RegisterModel store = new RegisterModel();
    private final List<Registers> instances =
            IntStream.range(0, 4).mapToObj(this::instance).toList();
    private int calls;
    private int running;

    private Registers instance(int process) {
        RegisterStore place = new RegisterStore() {

            @Override
            public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
                calls++;
                return CompletableFuture.completedFuture(
                        store.set(process, claim, timeToLive.toNanos() / 1_000, time.nanoTime() / 1_000));
            }

            @Override
            public BackendException failure(Throwable failure, long began) {
                return new BackendException("failed", failure);
            }
        };
        Registers.Access rules = new Registers.Access() {

            @Override
            public CompletableFuture<Reply> start(Supplier<CompletableFuture<Reply>> call) {
                return call.get();
            }

            @Override
            public long timeoutNanos() {
                return Duration.ofMillis(100).toNanos();
            }

            @Override
            public void await(Future<?> decision) {}

            @Override
            public int fallback(ThrottlePolicy policy, int limit, boolean congested) {
                return 0;
            }
        };
        return new Registers(time, place, rules, Registers.TIME_TO_LIVE);
    }

    @ParameterizedTest
    @CsvSource({"0.5, 0.25, 0.001", "0.9, 0.25, 0.1"})
    void aHotKeyNeedsFewCallsOfTheStore(double demand, double mostCalls, double mostDeniedInVain) {
        SplittableRandom random = new SplittableRandom(5);
        double perNano = demand * SLOTS / LENGTH.toNanos();
        int requests = 30_000;
        int inVain = 0;
        for (int i = 0; i < requests; i++) {
            time.advance(Duration.ofNanos((long) (-Math.log1p(-random.nextDouble()) / perNano)));
            boolean free = running < SLOTS;
            Slot slot = instances.get(random.nextInt(4)).of(CHARGE.policy()).take(CHARGE);
            if (slot.outcome() == Outcome.ALLOWED) {
                running++;
                assertThat(running).isLessThanOrEqualTo(SLOTS);
                time.callAt(time.nanoTime() + LENGTH.toNanos(), () -> {
                    running--;
                    slot.release();
                });
            } else {
                inVain += free ? 1 : 0;
            }
        }
        assertThat((double) calls / requests).as("calls a request").isLessThan(mostCalls);
        assertThat((double) inVain / requests)
                .as("denied although a slot was free")
                .isLessThan(mostDeniedInVain);
    }
}
