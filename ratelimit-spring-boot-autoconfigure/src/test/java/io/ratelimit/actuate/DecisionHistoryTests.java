package io.ratelimit.actuate;

import static io.ratelimit.actuate.DecisionHistory.Kind.ALLOWED;
import static io.ratelimit.actuate.DecisionHistory.Kind.DENIED;
import static io.ratelimit.actuate.DecisionHistory.Kind.FAILED;
import static io.ratelimit.actuate.DecisionHistory.Kind.SHADOW_DENIED;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.PolicyListener;
import io.ratelimit.Rate;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.TimeSource;
import io.ratelimit.UpkeepTimeSource;
import io.ratelimit.actuate.DecisionHistory.Step;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The kind and the second that each decision is counted in. */
class DecisionHistoryTests {

    private static final ThrottlePolicy NARROW = ThrottlePolicy.of("narrow", BucketSpec.of("2/1d"), "user");
    private static final ThrottlePolicy WIDE = ThrottlePolicy.of("wide", BucketSpec.of("9/1d"));
    private static final ThrottlePolicy CANDIDATE =
            ThrottlePolicy.of("candidate", BucketSpec.of("1/1d")).withMode(Mode.SHADOW);
    private static final Duration SECOND = Duration.ofSeconds(1);

    private final ManualTimeSource time = new ManualTimeSource();
    private final DecisionHistory history = new DecisionHistory(new UpkeepTimeSource(time));
    private final Throttlers throttlers =
            new Throttlers(List.of(NARROW, WIDE, CANDIDATE), BucketStore.local(time), time, history);

    @Test
    void decisionsAreCountedInTheirSecond() {
        history.start();
        decide(1);
        time.advance(SECOND);
        time.advance(SECOND);
        decide(3);
        time.advance(SECOND.multipliedBy(2));

        assertThat(history.second(Step.SECOND)).isEqualTo(4);
        assertThat(history.counts("narrow", ALLOWED, Step.SECOND, 0, 4)).containsExactly(1, 0, 1, 0);
        assertThat(history.counts("narrow", DENIED, Step.SECOND, 0, 4)).containsExactly(0, 0, 2, 0);
        assertThat(history.counts("narrow", DENIED, Step.SECOND, 2, 3)).containsExactly(2);
    }

    @Test
    void aPolicyThatHadTheTokensOfADeniedCallCountsNothing() {
        history.start();
        decide(3);
        time.advance(SECOND);

        assertThat(history.counts("wide", ALLOWED, Step.SECOND, 0, 1)).containsExactly(2);
        assertThat(history.counts("wide", DENIED, Step.SECOND, 0, 1)).containsExactly(0);
    }

    @Test
    void denialsOfAShadowPolicyAreCountedApart() {
        history.start();
        decide(2);
        time.advance(SECOND);

        assertThat(history.counts("candidate", ALLOWED, Step.SECOND, 0, 1)).containsExactly(1);
        assertThat(history.counts("candidate", DENIED, Step.SECOND, 0, 1)).containsExactly(0);
        assertThat(history.counts("candidate", SHADOW_DENIED, Step.SECOND, 0, 1))
                .containsExactly(1);
        assertThat(history.counts("narrow", ALLOWED, Step.SECOND, 0, 1)).containsExactly(2);
    }

    @Test
    void failuresOfTheBackendAreCountedApart() {
        history.start();
        throttlers.listener().decided(denied(WIDE, Outcome.BACKEND_FAILED));
        throttlers.listener().decided(denied(WIDE, Outcome.QUEUE_FULL));
        throttlers.listener().decided(denied(CANDIDATE, Outcome.BACKEND_FAILED));
        time.advance(SECOND);

        assertThat(history.counts("wide", FAILED, Step.SECOND, 0, 1)).containsExactly(1);
        assertThat(history.counts("wide", DENIED, Step.SECOND, 0, 1)).containsExactly(1);
        assertThat(history.counts("candidate", FAILED, Step.SECOND, 0, 1)).containsExactly(0);
        assertThat(history.counts("candidate", SHADOW_DENIED, Step.SECOND, 0, 1))
                .containsExactly(0);
    }

    @Test
    void theLastFiveMinutesAreKept() {
        history.start();
        for (int i = 0; i < 310; i++) {
            throttlers.listener().decided(denied(WIDE, Outcome.DENIED));
            IntStream.range(0, i).forEach(each -> throttlers.listener().decided(allowed(WIDE)));
            time.advance(SECOND);
        }
        int[] lately = history.counts("wide", ALLOWED, Step.SECOND, 10, 310);

        assertThat(lately).hasSize(300).containsExactly(IntStream.range(10, 310).toArray());
        time.advance(SECOND);
        assertThat(history.counts("wide", ALLOWED, Step.SECOND, 10, 310))
                .as("read while a second ends")
                .isEqualTo(lately);
    }

    @Test
    void theLastHourIsKeptByWholeMinutes() {
        history.start();
        for (int minute = 1; minute <= 65; minute++) {
            for (int second = 0; second < 60; second++) {
                IntStream.range(0, minute).forEach(each -> throttlers.listener().decided(allowed(WIDE)));
                time.advance(SECOND);
            }
        }
        time.advance(SECOND);

        assertThat(history.second(Step.MINUTE)).isEqualTo(3_900);
        assertThat(history.counts("wide", ALLOWED, Step.MINUTE, 300, 3_900))
                .containsExactly(
                        IntStream.rangeClosed(6, 65).map(minute -> minute * 60).toArray());
        assertThat(history.counts("narrow", ALLOWED, Step.MINUTE, 3_780, 3_900)).containsExactly(0, 0);
    }

    @Test
    void aMinuteHasTheSecondsThatWereReadAndIsAGapIfNoneWas() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        PolicyListener wide = history.added(throttlers.get("wide"));
        history.start();
        for (int second = 1; second <= 30; second++) {
            sampleAt(late, second, wide, 2);
        }
        sampleAt(late, 190, wide, 1_000);
        for (int second = 191; second <= 240; second++) {
            sampleAt(late, second, wide, 3);
        }

        assertThat(history.counts("wide", ALLOWED, Step.MINUTE, 0, 240)).containsExactly(60, -1, -1, 49 * 3);
    }

    @Test
    void anAddedPolicyHasNoEarlierDecisions() {
        history.start();
        time.advance(SECOND);
        throttlers.add(ThrottlePolicy.of("later", BucketSpec.of("1/1d")));
        assertThat(history.counts("later", ALLOWED, Step.SECOND, 0, 1)).containsExactly(0);
        throttlers.global("later").decide(1);
        time.advance(SECOND);

        assertThat(history.counts("later", ALLOWED, Step.SECOND, 0, 2)).containsExactly(0, 1);
    }

    @Test
    void theRemainingTokensAreThoseOfTheLastDecision() {
        assertThat(history.lastRemaining("wide")).isNegative();
        decide(1);
        assertThat(history.lastRemaining("wide")).isEqualTo(8);
        assertThat(history.lastRemaining("narrow")).as("several buckets").isNegative();
        throttlers.global("wide").decide(5);
        assertThat(history.lastRemaining("wide")).isEqualTo(3);
    }

    @Test
    void theRemainingTokensAreThoseOfTheBucketItself() {
        throttlers.global("wide").decide(6);
        Answer noSlot = Answer.denied(Charge.of(WIDE, "", 1), Outcome.TOO_MANY_IN_FLIGHT, SECOND);
        throttlers.listener().decided(Decision.of(List.of(noSlot)));
        assertThat(history.lastRemaining("wide")).isEqualTo(3);
    }

    @Test
    void aLateSampleLeavesAGapAndNoPeak() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        PolicyListener wide = history.added(throttlers.get("wide"));
        history.start();
        sampleAt(late, 1.0, wide, 1);
        sampleAt(late, 4.5, wide, 50);
        sampleAt(late, 5.0, wide, 1);
        sampleAt(late, 6.0, wide, 2);

        assertThat(history.second(Step.SECOND)).isEqualTo(6);
        assertThat(history.counts("wide", ALLOWED, Step.SECOND, 0, 6)).containsExactly(1, -1, -1, -1, -1, 2);
    }

    /** The pause is longer than the history. */
    @Test
    void afterAPauseOfAnHourAllSecondsAreGaps() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        PolicyListener wide = history.added(throttlers.get("wide"));
        history.start();
        sampleAt(late, 1.0, wide, 1);
        sampleAt(late, 3_600.0, wide, 1);

        assertThat(history.second(Step.SECOND)).isEqualTo(3_600);
        assertThat(history.counts("wide", ALLOWED, Step.SECOND, 3_300, 3_600)).containsOnly(-1);
        assertThat(history.counts("wide", ALLOWED, Step.MINUTE, 60, 3_600)).containsOnly(-1);
        assertThat(late.scheduled).containsExactly(3_601_000_000_000L);
    }

    @Test
    void aSlightlyLateSampleDoesNotDelayTheNext() {
        LateTimeSource late = new LateTimeSource();
        DecisionHistory history = new DecisionHistory(late);
        PolicyListener wide = history.added(throttlers.get("wide"));
        history.start();
        for (int second = 1; second <= 100; second++) {
            sampleAt(late, second + 0.4, wide, 1);
        }

        assertThat(late.scheduled).containsExactly(101_000_000_000L);
        assertThat(history.counts("wide", ALLOWED, Step.SECOND, 0, 100)).containsOnly(1);
    }

    @Test
    void aClosedHistoryCancelsItsSample() {
        history.start();
        assertThat(time.waiting()).isEqualTo(1);
        history.close();
        assertThat(time.waiting()).isZero();
    }

    /** A closed clock makes all pending calls at once, so scheduling another one each time would never end. */
    @Test
    void noSampleIsScheduledOnAClosedClock() {
        LateTimeSource closed = new LateTimeSource();
        new DecisionHistory(closed).start();
        closed.makeCall();

        assertThat(closed.scheduled).isEmpty();
    }

    private void decide(int times) {
        for (int i = 0; i < times; i++) {
            throttlers.decide(List.of(
                    throttlers.get("narrow").forKey("alice").charge(1),
                    throttlers.global("wide").charge(1),
                    throttlers.global("candidate").charge(1)));
        }
    }

    private static void sampleAt(LateTimeSource time, double second, PolicyListener wide, int decisions) {
        Decision allowed = allowed(WIDE);
        IntStream.range(0, decisions)
                .forEach(each -> wide.decided(allowed, allowed.answers().get(0)));
        time.nanos = (long) (second * 1e9);
        time.makeCall();
    }

    private static Decision allowed(ThrottlePolicy policy) {
        return decision(policy, Outcome.ALLOWED);
    }

    private static Decision denied(ThrottlePolicy policy, Outcome outcome) {
        return decision(policy, outcome);
    }

    private static Decision decision(ThrottlePolicy policy, Outcome outcome) {
        Charge charge = Charge.of(policy, "", 1);
        BucketSnapshot empty = new BucketSnapshot(1, Rate.of("1/s"), 0, Duration.ZERO, Duration.ZERO);
        return Decision.of(List.of(
                outcome == Outcome.ALLOWED
                        ? Answer.allowed(charge, empty, Duration.ZERO)
                        : Answer.denied(charge, outcome, empty, Duration.ZERO)));
    }

    /** A clock that makes a scheduled call when the test wants it, too late or too early. */
    private static final class LateTimeSource implements TimeSource {

        private final Deque<Long> scheduled = new ArrayDeque<>();
        private final Deque<Runnable> calls = new ArrayDeque<>();
        private long nanos;

        @Override
        public long nanoTime() {
            return nanos;
        }

        @Override
        public Future<?> callAt(long moment, Runnable call) {
            scheduled.add(moment);
            calls.add(call);
            return new CompletableFuture<>();
        }

        void makeCall() {
            scheduled.remove();
            calls.remove().run();
        }
    }
}
