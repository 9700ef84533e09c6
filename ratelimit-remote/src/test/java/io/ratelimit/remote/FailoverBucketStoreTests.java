package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.Backend.Condition;
import io.ratelimit.BackendException;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Decisions while the backend fails. */
class FailoverBucketStoreTests extends FailoverScenario {

    @Test
    void anAvailableBackendDecides() {
        Decision decision = take(LOCAL, 30);

        assertThat(decision.allowed()).isTrue();
        assertThat(decision.remaining()).isEqualTo(70);
        assertThat(decision.answers()).noneMatch(Answer::fallback);
        assertThat(store.snapshot(charge(LOCAL, 1)).available()).isEqualTo(70);
        store.giveBack(decision.answers());
        assertThat(redis.available(charge(LOCAL, 1))).isEqualTo(100);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines()).isEmpty();
    }

    @Test
    void theFallbackGrantsTheShareOfCapacityAndRate() {
        redis.breakDown();

        assertThat(drain(LOCAL)).isEqualTo(50);
        Decision denied = take(LOCAL, 1);
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.retryNanos()).isEqualTo(Duration.ofMillis(200).toNanos());
        assertThat(denied.answers()).allMatch(Answer::fallback);
        assertThat(denied.answers().get(0).charge()).as("the original charge").isEqualTo(charge(LOCAL, 1));
        time.advance(Duration.ofSeconds(2));
        assertThat(drain(LOCAL)).isEqualTo(10);
    }

    @Test
    void underAllowOnlyACostAboveTheCapacityIsDenied() {
        redis.breakDown();

        Decision decision = take(ALLOW, 100);
        assertThat(decision.allowed()).isTrue();
        assertThat(decision.answers()).allMatch(Answer::fallback);
        assertThat(drainSome(ALLOW, 1_000)).isEqualTo(1_000);
        assertThat(take(ALLOW, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    private int drainSome(ThrottlePolicy policy, int max) {
        int granted = 0;
        for (int i = 0; i < max && take(policy, 1).allowed(); i++) {
            granted++;
        }
        return granted;
    }

    @Test
    void aDenialByTheRuleIsAFailureAndNoDenial() {
        redis.breakDown();

        Decision decision = take(DENY, 1);
        assertThat(decision.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(decision.retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(take(DENY, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void aRequestOfSeveralRulesTakesAllOrNothing() {
        redis.breakDown();

        Decision refused = store.take(List.of(charge(LOCAL, 50), charge(DENY, 1), charge(ALLOW, 1)));
        assertThat(refused.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(refused.denials()).extracting(Answer::policy).containsExactly(DENY);

        Decision allowed = store.take(List.of(charge(ALLOW, 1), charge(LOCAL, 50)));
        assertThat(allowed.allowed()).isTrue();
        assertThat(allowed.answers()).extracting(Answer::policy).containsExactly(ALLOW, LOCAL);
        Decision denied = store.take(List.of(charge(ALLOW, 1), charge(LOCAL, 1)));
        assertThat(denied.outcome()).isEqualTo(Outcome.DENIED);
        assertThat(denied.denials()).extracting(Answer::policy).containsExactly(LOCAL);
    }

    @Test
    void aCostThatOnlyTheShareIsTooSmallForCanStillFitLater() {
        redis.breakDown();

        assertThat(take(LOCAL, 51).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(take(LOCAL, 51).retryNanos()).isPositive();
        assertThat(take(LOCAL, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
    }

    @Test
    void tokensOfTheFallbackAreGivenBackToTheFallback() {
        take(LOCAL, 100);
        redis.breakDown();
        Decision decision = take(LOCAL, 50);
        redis.mend();

        store.giveBack(decision.answers());

        assertThat(redis.available(charge(LOCAL, 1))).isZero();
        redis.breakDown();
        assertThat(take(LOCAL, 50).allowed()).isTrue();
    }

    @Test
    void anAnswerWithoutTokensIsNotGivenBack() {
        take(ALLOW, 40);
        redis.breakDown();
        Decision decision = take(ALLOW, 60);
        redis.mend();

        store.giveBack(decision.answers());

        assertThat(redis.available(charge(ALLOW, 1)))
                .as("also the call that failed took")
                .isZero();
    }

    @Test
    void duringAnOutageTokensOfRedisStayTaken() {
        Decision decision = take(LOCAL, 60);
        breakUntilOpen();

        store.giveBack(decision.answers());

        assertThat(redis.calls()).isZero();
        assertThat(redis.available(charge(LOCAL, 1))).isLessThanOrEqualTo(40);
    }

    @Test
    void aCallThatCostAsMuchAsEstimatedNeedsNoCallAndProvesNothing() {
        Answer taken = take(LOCAL, 60).answers().get(0);
        breakUntilOpen();
        assertThat(store.settle(taken, 60)).as("in the pause").isTrue();

        time.advance(CircuitBreaker.PAUSE);
        assertThat(store.settle(taken, 60)).isTrue();
        assertThat(redis.calls()).isZero();
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
    }

    @Test
    void aCallThatFailedIsNotMadeAgain() {
        redis.breakDown();
        redis.calls();

        take(LOCAL, 1);

        assertThat(redis.calls()).isEqualTo(1);
    }

    @Test
    void duringAnOutageOnlyProbesAreCalled() {
        breakUntilOpen();
        for (int i = 0; i < 100; i++) {
            take(LOCAL, 1);
        }
        assertThat(redis.calls()).isZero();

        time.advance(CircuitBreaker.PAUSE);
        for (int i = 0; i < 100; i++) {
            take(LOCAL, 1);
        }
        assertThat(redis.calls()).isEqualTo(1);
        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void slowIsFailure() {
        redis.slowDown(TIMEOUT.plusNanos(1));
        for (int i = 0; i < 5; i++) {
            assertThat(take(LOCAL, 1).answers())
                    .as("a late answer is used nevertheless")
                    .noneMatch(Answer::fallback);
        }
        redis.calls();

        assertThat(take(LOCAL, 1).answers()).allMatch(Answer::fallback);
        assertThat(redis.calls()).isZero();
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
        assertThat(store.backend().state().cause()).isEqualTo("its answers are late");
    }

    @Test
    void anErrorGoesThroughAndBlocksNoProbe() {
        breakUntilOpen();
        redis.fail(new StackOverflowError());
        time.advance(CircuitBreaker.PAUSE);
        assertThatExceptionOfType(StackOverflowError.class).isThrownBy(() -> take(LOCAL, 1));

        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    /** Clients may choose how deep a call is. */
    @Test
    void anOverflowOfTheStackIsNoOutage() {
        redis.fail(new StackOverflowError());
        for (int i = 0; i < 10; i++) {
            assertThatExceptionOfType(StackOverflowError.class).isThrownBy(() -> take(ALLOW, 1));
        }
        redis.mend();
        assertThat(take(ALLOW, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void anotherErrorIsAFailure() {
        redis.fail(new NoClassDefFoundError());
        for (int i = 0; i < 5; i++) {
            assertThatExceptionOfType(NoClassDefFoundError.class).isThrownBy(() -> take(ALLOW, 1));
        }
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
        assertThat(lines()).hasSize(1);
    }

    @Test
    void duringAnOutageASnapshotShowsTheFallback() {
        redis.breakDown();
        take(LOCAL, 20);

        assertThat(store.snapshot(charge(LOCAL, 1)).available()).isEqualTo(30);
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.snapshot(charge(DENY, 1)));
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.snapshot(charge(ALLOW, 1)));
    }

    @Test
    void aFailedResetThrows() {
        redis.breakDown();
        take(LOCAL, 50);

        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.reset(charge(LOCAL, 1)));
        assertThat(take(LOCAL, 50).allowed())
                .as("the fallback bucket is forgotten in any case")
                .isTrue();
        redis.mend();
        store.reset(charge(LOCAL, 1));
        assertThat(redis.available(charge(LOCAL, 1))).isEqualTo(100);
    }

    @Test
    void tokensAreTakenAheadFromTheFallbackToo() {
        redis.breakDown();
        take(LOCAL, 50);

        Decision ahead = store.reserve(List.of(charge(LOCAL, 5).withMaxWait(Duration.ofSeconds(1))));

        assertThat(ahead.allowed()).isTrue();
        assertThat(ahead.waitFor()).isEqualTo(Duration.ofSeconds(1));
        assertThat(take(LOCAL, 1).allowed()).isFalse();
        store.giveBack(ahead.answers());
        time.advance(Duration.ofMillis(200));
        assertThat(take(LOCAL, 1).allowed()).as("given back by its position").isTrue();
        assertThat(store.reserve(List.of(charge(DENY, 1))).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
    }

    /** However often Redis fails, an instance grants at most its share of capacity and rate by itself. */
    @RepeatedTest(20)
    void flappingGivesNoFreshBurst(RepetitionInfo run) {
        var random = new SplittableRandom(run.getCurrentRepetition());
        long granted = 0;
        long began = time.nanoTime();
        for (int flap = 0; flap < 200; flap++) {
            if (random.nextBoolean()) {
                redis.mend();
            } else {
                redis.fail(
                        random.nextBoolean() ? new BackendException("gone") : new BackendException("OOM", null, true));
            }
            for (int i = random.nextInt(40); i > 0; i--) {
                Decision decision = take(LOCAL, 1 + random.nextInt(3));
                Answer answer = decision.answers().get(0);
                granted += decision.allowed() && answer.fallback()
                        ? answer.charge().cost()
                        : 0;
            }
            time.advance(Duration.ofMillis(random.nextInt(700)));
        }
        double seconds = (time.nanoTime() - began) / 1e9;
        assertThat(granted)
                .as("seed %d", run.getCurrentRepetition())
                .isPositive()
                .isLessThanOrEqualTo((long) (50 + 5 * seconds + 1));
    }
}
