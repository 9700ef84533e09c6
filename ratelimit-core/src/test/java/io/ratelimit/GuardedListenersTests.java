package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
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
        public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
            fail();
        }
    }

    @Test
    void aDecisionStandsWhateverAListenerThrows() {
        for (Throwable failure : List.of(new IllegalStateException(), new LinkageError(), new StackOverflowError())) {
            int calls = failure instanceof StackOverflowError ? 3 : 1; // a caller with more stack may follow
            Broken broken = new Broken(new AtomicInteger(), failure);
            Throttler throttler = throttlers(broken).global("all");

            assertThat(throttler.decide(1).allowed()).isTrue();
            assertThat(throttler.decide(1).allowed()).isTrue();
            assertThat(throttler.decide(1).allowed()).isFalse();
            assertThat(broken.calls).as("calls, after %s", failure).hasValue(calls);
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

    /** A listener whose listeners for single policies throw, and that counts the calls of both. */
    private static final class BrokenForOnePolicy implements ThrottleListener {

        private final AtomicInteger calls = new AtomicInteger();

        @Override
        public void decided(Decision decision) {
            calls.incrementAndGet();
        }

        @Override
        public PolicyListener added(PolicyThrottler throttler) {
            return (decision, answer) -> {
                calls.incrementAndGet();
                throw new IllegalStateException();
            };
        }
    }

    @Test
    void aListenerIsLeftOutWithItsListenersForSinglePolicies() {
        BrokenForOnePolicy broken = new BrokenForOnePolicy();
        AtomicInteger decisions = new AtomicInteger();
        AtomicInteger answers = new AtomicInteger();
        Throttlers throttlers = throttlers(ThrottleListener.of(List.of(broken, new ThrottleListener() {
            @Override
            public void decided(Decision decision) {
                decisions.incrementAndGet();
            }

            @Override
            public PolicyListener added(PolicyThrottler throttler) {
                return (decision, answer) -> answers.incrementAndGet();
            }
        })));
        throttlers.add(ThrottlePolicy.of("more", BucketSpec.of("9/1d")));
        for (int i = 0; i < 3; i++) {
            throttlers.global("all").decide(1);
            throttlers.global("more").decide(1);
        }

        assertThat(broken.calls).as("the decision and the first answer").hasValue(2);
        assertThat(decisions).hasValue(6);
        assertThat(answers).hasValue(6);
    }

    @Test
    void aPolicysListenerGetsWhatConcernsThePolicyAndNothingElse() {
        List<String> calls = new ArrayList<>();
        ThrottleListener listener = new ThrottleListener() {
            @Override
            public void decided(Decision decision) {}

            @Override
            public @Nullable PolicyListener added(PolicyThrottler throttler) {
                String name = throttler.policy().name();
                return name.equals("silent")
                        ? null
                        : new PolicyListener() {
                            @Override
                            public void decided(Decision decision, Decision.Answer answer) {
                                calls.add(name + " " + decision.outcome() + " " + answer.outcome());
                            }

                            @Override
                            public void eventOccurred(Event event) {
                                calls.add(name + " " + event);
                            }

                            @Override
                            public void reconfigured(ThrottlePolicy before, ThrottlePolicy after) {
                                calls.add(name + " " + after.spec());
                            }
                        };
            }
        };
        Throttlers throttlers = throttlers(listener);
        ThrottlePolicy more = ThrottlePolicy.of("more", BucketSpec.of("9/1d"));
        throttlers.add(more);
        throttlers.add(ThrottlePolicy.of("silent", BucketSpec.of("9/1d")));
        throttlers.decide(List.of(
                throttlers.global("all").charge(3),
                Charge.of(more, "", 1),
                throttlers.global("silent").charge(1)));
        throttlers.listener().eventOccurred(more, ThrottleListener.Event.DELAYED);
        throttlers.get("more").reconfigure(BucketSpec.of("8/1d"));
        throttlers.get("silent").reconfigure(BucketSpec.of("8/1d"));

        assertThat(calls)
                .containsExactly(
                        "all NEVER_FITS NEVER_FITS",
                        "more NEVER_FITS ALLOWED",
                        "more DELAYED",
                        "more 8/1d, capacity 8");
    }
}
