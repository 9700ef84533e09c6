package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.ThrottlePolicy.Mode;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * A call that begins with little of its thread's stack left may overflow it anywhere, but leaves no slot behind. It may also
 * overflow within a class of the JDK, which is then as broken as the error found it: these tests run only when they are asked for.
 */
@EnabledIfSystemProperty(named = "ratelimit.test.stack", matches = "true")
@Timeout(60)
class ExhaustedStackTests {

    private static final ThrottlePolicy EXPORTS = ThrottlePolicy.of("exports", BucketSpec.inFlight(1), "user");
    private static final ThrottlePolicy CHAT =
            ThrottlePolicy.of("chat", BucketSpec.of("1000000/1s").withInFlight(1), "user");
    private static final ThrottlePolicy SHADOW =
            ThrottlePolicy.of("shadow", BucketSpec.inFlight(1), "user").withMode(Mode.SHADOW);
    private static final ThrottlePolicy SHADOW_TOO =
            ThrottlePolicy.of("shadow-too", BucketSpec.inFlight(1), "user").withMode(Mode.SHADOW);
    private static final ThrottlePolicy PATIENT =
            ThrottlePolicy.of("patient", BucketSpec.inFlight(1), "user").withMaxWait(Duration.ofSeconds(10));

    private final ManualTimeSource time = new ManualTimeSource();
    private final AtomicInteger reported = new AtomicInteger();
    private final HurriedTimeSource clock = new HurriedTimeSource();
    private final Throttlers throttlers = new Throttlers(
            List.of(EXPORTS, CHAT, SHADOW, SHADOW_TOO, PATIENT),
            BucketStore.local(time),
            clock,
            decision -> reported.addAndGet(decision.answers().size()));

    /** The clock of the test. It ends each wait at once: another thread makes a call of the test before the time is over. */
    private final class HurriedTimeSource implements TimeSource {

        private Runnable meanwhile = () -> {};

        @Override
        public long nanoTime() {
            return time.nanoTime();
        }

        @Override
        public void parkUntil(long nanos) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Future<?> callAt(long nanos, Runnable call) {
            CompletableFuture.runAsync(meanwhile, work -> new Thread(work).start())
                    .join();
            call.run();
            return CompletableFuture.completedFuture(null);
        }
    }

    private Charge charge(ThrottlePolicy policy, int key) {
        return Charge.of(throttlers.get(policy.name()).policy(), "user" + key, 1);
    }

    /** Makes a call of another key before, since a call whose stack is used up leaves the release to the next one. */
    private void checkNothingIsLeft(int depth) {
        throttlers.decide(List.of(charge(CHAT, -1))).release();
        for (PolicyThrottler throttler : throttlers.all()) {
            String policy = throttler.policy().name();
            assertThat(throttler.held()).as("%s, depth %d", policy, depth).isZero();
            assertThat(throttlers.waiting(policy))
                    .as("%s, depth %d", policy, depth)
                    .isZero();
        }
    }

    @Test
    void atACallOfAKeyInUse() throws InterruptedException {
        List<Charge> charges = List.of(charge(EXPORTS, 0));
        StackDepths.each(depth -> throttlers.decide(charges)::release, this::checkNothingIsLeft);
    }

    @Test
    void atACallOfANewKey() throws InterruptedException {
        StackDepths.each(
                depth -> throttlers.decide(List.of(charge(EXPORTS, depth)))::release, this::checkNothingIsLeft);
    }

    @Test
    void atACallOfSeveralPolicies() throws InterruptedException {
        List<Charge> charges = List.of(charge(EXPORTS, 0), charge(CHAT, 0), charge(SHADOW, 0), charge(SHADOW_TOO, 0));
        StackDepths.each(depth -> throttlers.decide(charges)::release, this::checkNothingIsLeft);
    }

    private Decision acquire(List<Charge> charges) {
        try {
            return throttlers.acquire(charges);
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    @Test
    void atAWaitInVain() throws InterruptedException {
        Decision running = throttlers.decide(List.of(charge(PATIENT, 0)));
        List<Charge> charges = List.of(charge(EXPORTS, 0), charge(PATIENT, 0));
        StackDepths.each(depth -> acquire(charges)::release, depth -> {
            throttlers.decide(List.of(charge(CHAT, -1))).release();
            assertThat(throttlers.inFlight("patient")).isOne();
            assertThat(throttlers.inFlight("exports")).isZero();
            assertThat(throttlers.waiting("patient")).isZero();
        });
        running.release();
        checkNothingIsLeft(0);
    }

    @Test
    void atAWaitForASlot() throws InterruptedException {
        AtomicReference<Decision> running = new AtomicReference<>();
        running.set(throttlers.decide(List.of(charge(PATIENT, 0))));
        clock.meanwhile = () -> running.get().release();
        List<Charge> charges = List.of(charge(EXPORTS, 0), charge(PATIENT, 0));
        StackDepths.each(depth -> acquire(charges)::release, depth -> {
            running.get().release();
            checkNothingIsLeft(depth);
            running.set(throttlers.decide(List.of(charge(PATIENT, 0))));
        });
    }
}
