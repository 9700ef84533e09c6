package io.ratelimit.actuate;

import static io.ratelimit.actuate.DecisionKind.ALLOWED;
import static io.ratelimit.actuate.DecisionKind.DENIED;
import static io.ratelimit.actuate.DecisionKind.FAILED;
import static io.ratelimit.actuate.DecisionKind.SHADOW_DENIED;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What is counted as what, and in which second. */
class DecisionHistoryTests {

    private static final ThrottlePolicy NARROW = ThrottlePolicy.of("narrow", BucketSpec.of("2/1d"), "user");
    private static final ThrottlePolicy WIDE = ThrottlePolicy.of("wide", BucketSpec.of("9/1d"));
    private static final ThrottlePolicy CANDIDATE =
            ThrottlePolicy.of("candidate", BucketSpec.of("1/1d")).withMode(Mode.SHADOW);
    private static final Duration SECOND = Duration.ofSeconds(1);

    private final ManualTimeSource time = new ManualTimeSource();
    private final DecisionHistory history = new DecisionHistory(time);
    private final Throttlers throttlers =
            new Throttlers(List.of(NARROW, WIDE, CANDIDATE), BucketStore.local(time), time, history);

    @Test
    void eachSecondHasWhatWasDecidedInIt() {
        history.start();
        ask(1);
        time.advance(SECOND);
        time.advance(SECOND);
        ask(3);
        time.advance(SECOND.multipliedBy(2));

        assertThat(history.second()).isEqualTo(4);
        assertThat(history.counts("narrow", ALLOWED, 0, 4)).containsExactly(1, 0, 1, 0);
        assertThat(history.counts("narrow", DENIED, 0, 4)).containsExactly(0, 0, 2, 0);
        assertThat(history.counts("narrow", DENIED, 2, 3)).containsExactly(2);
    }

    @Test
    void aPolicyThatWouldHaveAllowedWhatAnotherRefusedHasNoPartInIt() {
        history.start();
        ask(3);
        time.advance(SECOND);

        assertThat(history.counts("wide", ALLOWED, 0, 1)).containsExactly(2);
        assertThat(history.counts("wide", DENIED, 0, 1)).containsExactly(0);
    }

    @Test
    void whatAShadowPolicyWouldHaveDeniedIsCountedApart() {
        history.start();
        ask(2);
        time.advance(SECOND);

        assertThat(history.counts("candidate", ALLOWED, 0, 1)).containsExactly(1);
        assertThat(history.counts("candidate", DENIED, 0, 1)).containsExactly(0);
        assertThat(history.counts("candidate", SHADOW_DENIED, 0, 1)).containsExactly(1);
        assertThat(history.counts("narrow", ALLOWED, 0, 1)).containsExactly(2);
    }

    @Test
    void aFailedBackendDeniesNothingAndItsRefusalsAreCountedApart() {
        history.start();
        history.decided(refused(WIDE, Outcome.BACKEND_FAILED));
        history.decided(refused(WIDE, Outcome.QUEUE_FULL));
        history.decided(refused(CANDIDATE, Outcome.BACKEND_FAILED));
        time.advance(SECOND);

        assertThat(history.counts("wide", FAILED, 0, 1)).containsExactly(1);
        assertThat(history.counts("wide", DENIED, 0, 1)).containsExactly(1);
        assertThat(history.counts("candidate", FAILED, 0, 1)).containsExactly(0);
        assertThat(history.counts("candidate", SHADOW_DENIED, 0, 1)).containsExactly(0);
    }

    @Test
    void theLastFiveMinutesAreKept() {
        history.start();
        for (int i = 0; i < 310; i++) {
            history.decided(refused(WIDE, Outcome.DENIED));
            IntStream.range(0, i).forEach(each -> history.decided(allowed(WIDE)));
            time.advance(SECOND);
        }
        int[] lately = history.counts("wide", ALLOWED, 10, 310);

        assertThat(lately)
                .hasSize(DecisionHistory.SECONDS)
                .containsExactly(IntStream.range(10, 310).toArray());
        time.advance(SECOND);
        assertThat(history.counts("wide", ALLOWED, 10, 310))
                .as("read while a second ends")
                .isEqualTo(lately);
    }

    @Test
    void aPolicyThatIsAddedLaterHasDecidedNothingBefore() {
        history.start();
        time.advance(SECOND);
        throttlers.add(ThrottlePolicy.of("later", BucketSpec.of("1/1d")));
        assertThat(history.counts("later", ALLOWED, 0, 1)).containsExactly(0);
        throttlers.get("later").decide(1);
        time.advance(SECOND);

        assertThat(history.counts("later", ALLOWED, 0, 2)).containsExactly(0, 1);
    }

    @Test
    void theLevelIsThatOfTheLastDecision() {
        assertThat(history.level("wide")).isNegative();
        ask(1);
        assertThat(history.level("wide")).isEqualTo(8);
        assertThat(history.level("narrow")).as("of many buckets").isNegative();
        throttlers.get("wide").decide(5);
        assertThat(history.level("wide")).isEqualTo(3);
    }

    @Test
    void whoCouldNotLookInTimeLeavesAGapAndNoPeak() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        history.start();
        lookAt(late, 1.0, history, 1);
        lookAt(late, 4.5, history, 50);
        lookAt(late, 5.0, history, 1);
        lookAt(late, 6.0, history, 2);

        assertThat(history.second()).isEqualTo(6);
        assertThat(history.counts("wide", ALLOWED, 0, 6)).containsExactly(1, -1, -1, -1, -1, 2);
    }

    /** Longer than anything is kept. */
    @Test
    void afterAnHourAsleepAllIsAGap() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        history.start();
        lookAt(late, 1.0, history, 1);
        lookAt(late, 3_600.0, history, 1);

        assertThat(history.second()).isEqualTo(3_600);
        assertThat(history.counts("wide", ALLOWED, 3_300, 3_600)).containsOnly(-1);
        assertThat(late.ordered).containsExactly(3_601_000_000_000L);
    }

    @Test
    void lookingALittleLateDoesNotMakeTheNextLater() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        history.start();
        for (int second = 1; second <= 100; second++) {
            lookAt(late, second + 0.4, history, 1);
        }

        assertThat(late.ordered).containsExactly(101_000_000_000L);
        assertThat(history.counts("wide", ALLOWED, 0, 100)).containsOnly(1);
    }

    @Test
    void aClosedHistoryLooksNoMore() {
        history.start();
        assertThat(time.waiting()).isEqualTo(1);
        history.close();
        assertThat(time.waiting()).isZero();
    }

    /** It makes at once the calls that were still to come: to order another each time would never end. */
    @Test
    void aClosedClockIsAskedForNothingMore() {
        LateTimeSource closed = new LateTimeSource();
        new DecisionHistory(closed).start();
        closed.makeCall();

        assertThat(closed.ordered).isEmpty();
    }

    private void ask(int times) {
        for (int i = 0; i < times; i++) {
            throttlers.decide(List.of(
                    throttlers.get("narrow").forKey("alice").charge(1),
                    throttlers.get("wide").charge(1),
                    throttlers.get("candidate").charge(1)));
        }
    }

    private static void lookAt(LateTimeSource time, double second, DecisionHistory history, int decisions) {
        IntStream.range(0, decisions).forEach(each -> history.decided(allowed(WIDE)));
        time.nanos = (long) (second * 1e9);
        time.makeCall();
    }

    private static Decision allowed(ThrottlePolicy policy) {
        return decision(policy, Outcome.ALLOWED);
    }

    private static Decision refused(ThrottlePolicy policy, Outcome outcome) {
        return decision(policy, outcome);
    }

    private static Decision decision(ThrottlePolicy policy, Outcome outcome) {
        Decision one = new Decision(outcome, 0, 0, 0, 0, 0, List.of());
        return Decision.of(List.of(new Answer(Charge.of(policy, "", 1), one)));
    }

    /** Makes the call that was ordered when the test says so, be it too late or too early. */
    private static final class LateTimeSource implements TimeSource {

        private final Deque<Long> ordered = new ArrayDeque<>();
        private final Deque<Runnable> calls = new ArrayDeque<>();
        private long nanos;

        @Override
        public long nanoTime() {
            return nanos;
        }

        @Override
        public Future<?> callAt(long moment, Runnable call) {
            ordered.add(moment);
            calls.add(call);
            return new CompletableFuture<>();
        }

        void makeCall() {
            ordered.remove();
            calls.remove().run();
        }
    }
}
