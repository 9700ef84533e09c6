package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class GuardedListenersTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("all", BucketSpec.of("2/1d"));

    private final ManualTimeSource time = new ManualTimeSource();

    private Throttlers throttlers(ThrottleListener listener) {
        return new Throttlers(List.of(POLICY), BucketStore.local(time), time, listener);
    }

    /** A listener whose methods all throw. */
    private record Broken(AtomicInteger calls, Throwable failure) implements ThrottleListener {

        private void fail() {
            calls.incrementAndGet();
            if (failure instanceof Error error) {
                throw error;
            }
            throw (RuntimeException) failure;
        }

        @Override
        public void decided(Decision decision) {
            fail();
        }

        @Override
        public void added(PolicyThrottler throttler) {}

        @Override
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            fail();
        }
    }

    @Test
    void aDecisionStandsWhateverAListenerThrows() {
        for (Throwable failure : List.of(new IllegalStateException(), new LinkageError(), new StackOverflowError())) {
            Broken broken = new Broken(new AtomicInteger(), failure);
            Throttler throttler = throttlers(broken).global("all");

            assertThat(throttler.decide(1).allowed()).isTrue();
            assertThat(throttler.decide(1).allowed()).isTrue();
            assertThat(throttler.decide(1).allowed()).isFalse();
            assertThat(broken.calls).as("calls, after %s", failure).hasValue(1);
        }
    }

    @Test
    void aChangeStandsAndALaterPolicyIsAdded() {
        Broken broken = new Broken(new AtomicInteger(), new IllegalStateException());
        Throttlers throttlers = throttlers(broken);

        throttlers.get("all").reconfigure(BucketSpec.of("3/1d"));

        assertThat(throttlers.global("all").policy().spec()).isEqualTo(BucketSpec.of("3/1d"));
        throttlers.add(ThrottlePolicy.of("more", BucketSpec.of("1/1d")));
        assertThat(throttlers.global("more").decide(1).allowed()).isTrue();
    }

    @Test
    void theOtherListenersAreStillCalled() {
        AtomicInteger before = new AtomicInteger();
        AtomicInteger after = new AtomicInteger();
        Broken broken = new Broken(new AtomicInteger(), new IllegalStateException());
        Throttler throttler = throttlers(ThrottleListener.of(List.<ThrottleListener>of(
                        decision -> before.incrementAndGet(), broken, decision -> after.incrementAndGet())))
                .global("all");
        for (int i = 0; i < 5; i++) {
            throttler.decide(1);
        }

        assertThat(List.of(before.get(), broken.calls.get(), after.get())).containsExactly(5, 1, 5);
    }

    @Test
    void anErrorOfTheJvmIsNotCaught() {
        Throttler throttler = throttlers(new Broken(new AtomicInteger(), new OutOfMemoryError()))
                .global("all");

        assertThatExceptionOfType(OutOfMemoryError.class).isThrownBy(() -> throttler.decide(1));
    }
}
