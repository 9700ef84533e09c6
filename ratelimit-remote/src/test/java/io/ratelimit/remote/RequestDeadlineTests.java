package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimit.Backend.Condition;
import io.ratelimit.BackendException;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.remote.Deadline.CongestedException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Decisions after the time of a request is used up, and in a process that is too busy to call the backend. */
class RequestDeadlineTests extends FailoverScenario {

    @Test
    void theCallsOfOneRequestShareTheTime() {
        redis.slowDown(Duration.ofMillis(60));
        deadline.open(new Deadline.Request());
        assertThat(deadline.leftNanos()).isEqualTo(TIMEOUT.toNanos());
        take(LOCAL, 1);
        assertThat(deadline.leftNanos()).isEqualTo(Duration.ofMillis(40).toNanos());
        take(LOCAL, 1);
        assertThat(deadline.hasFailed()).as("its answer came too late").isTrue();
        redis.calls();
        assertThat(take(LOCAL, 1).answers()).allMatch(Answer::fallback);
        assertThat(redis.calls()).isZero();

        deadline.close();
        redis.slowDown(Duration.ZERO);
        assertThat(deadline.leftNanos()).isEqualTo(TIMEOUT.toNanos());
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void aRequestWithinARequestIsTheSame() {
        redis.breakDown();
        assertThat(deadline.open(new Deadline.Request())).isTrue();
        take(LOCAL, 1);
        assertThat(deadline.open(new Deadline.Request())).isFalse();
        assertThat(deadline.hasFailed()).isTrue();
        deadline.close();
        assertThat(deadline.hasFailed()).isFalse();
    }

    @Test
    void aLaterDispatchAndOtherThreadsContinueTheRequest() {
        Deadline.Request request = new Deadline.Request();
        Deadline bound = new Deadline(time, TIMEOUT, () -> request);
        assertThat(deadline.open(request)).isTrue();
        redis.slowDown(Duration.ofMillis(60));
        take(LOCAL, 1);
        deadline.close();
        assertThat(bound.leftNanos()).isEqualTo(Duration.ofMillis(40).toNanos());
        assertThat(deadline.open(request)).isTrue();
        assertThat(deadline.leftNanos()).isEqualTo(Duration.ofMillis(40).toNanos());
        deadline.close();
        assertThat(deadline.leftNanos()).as("of no request").isEqualTo(TIMEOUT.toNanos());
    }

    @Test
    void callsAtTheSameTimeTakeTheirTimeOnce() {
        deadline.open(new Deadline.Request());
        Deadline.Request first = deadline.began(0);
        Deadline.Request second = deadline.began(Duration.ofMillis(10).toNanos());
        deadline.ended(first, Duration.ofMillis(30).toNanos(), false, false);
        deadline.ended(second, Duration.ofMillis(40).toNanos(), false, false);
        assertThat(deadline.leftNanos()).isEqualTo(Duration.ofMillis(60).toNanos());
        deadline.close();
    }

    @Test
    void theSettlementsOfARequestShareATimeOfTheirOwn() {
        redis.slowDown(Duration.ofMillis(60));
        deadline.open(new Deadline.Request());
        List<Answer> taken = List.of(answer(2), answer(3));
        assertThat(deadline.hasFailed()).as("its time is used up").isTrue();
        redis.calls();
        assertThat(store.settle(taken.get(0), 1)).isTrue();
        assertThat(store.settle(taken.get(1), 1)).isTrue();
        assertThat(redis.calls()).isEqualTo(2);
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.settle(taken.get(1), 1));
        assertThat(redis.calls()).as("the time for settlements is used up").isZero();
        assertThat(take(LOCAL, 1).answers()).as("other calls get no new time").allMatch(Answer::fallback);

        deadline.close();
        Answer next = answer(2);
        redis.calls();
        assertThat(store.settle(next, 1)).isTrue();
        assertThat(redis.calls()).isEqualTo(1);
    }

    @Test
    void aSettlementThatFailsLeavesTimeForTheNext() {
        deadline.open(new Deadline.Request());
        Answer taken = answer(5);
        redis.breakDown();
        assertThatExceptionOfType(BackendException.class).isThrownBy(() -> store.settle(taken, 6));
        redis.mend();
        assertThat(store.settle(taken, 1)).isTrue();
        assertThat(take(LOCAL, 1).answers()).as("nor does it fail other calls").noneMatch(Answer::fallback);
    }

    private Answer answer(long cost) {
        return take(LOCAL, cost).answers().get(0);
    }

    @Test
    void pastTheDeadlineOfARequestNoCallIsMadeAndAllowIsNoAnswer() {
        redis.slowDown(Duration.ofMillis(5));
        deadline.open(new Deadline.Request());
        for (int i = 0; i < 20; i++) {
            assertThat(take(ALLOW, 1).answers()).noneMatch(Answer::fallback);
        }
        assertThat(deadline.leftNanos()).isZero();
        redis.calls();

        assertThat(take(DENY, 1).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(drain(ALLOW)).as("the local share").isEqualTo(50);
        assertThat(redis.calls()).isZero();
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        deadline.close();
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
    }

    @Test
    void aBusyProcessIsNoOutageAndAllowIsNoAnswer() {
        redis.fail(new CongestedException("no connection is free", null));

        assertThat(drain(ALLOW)).as("the local share").isEqualTo(50);
        assertThat(drain(LOCAL)).isEqualTo(50);
        assertThat(take(DENY, 1).outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(take(ALLOW, 101).outcome()).isEqualTo(Outcome.NEVER_FITS);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
        assertThat(lines())
                .containsExactly(
                        "WARN This process is too busy to call Redis for each decision in time (no connection is"
                                + " free): the local share makes the other decisions, or they are denials where"
                                + " 'on-backend-failure' is 'deny'");
        redis.mend();
        redis.calls();
        take(LOCAL, 1);
        assertThat(redis.calls()).as("the breaker stays closed").isEqualTo(1);
    }

    @Test
    void tokensThatABusyProcessTookFromMemoryUnderAllowAreGivenBackToMemory() {
        redis.fail(new CongestedException("no connection is free", null));
        Decision taken = take(ALLOW, 50);

        store.giveBack(taken.answers());

        assertThat(take(ALLOW, 50).answers()).allMatch(Answer::allowed);
    }

    @Test
    void aProbeOfABusyProcessIsFollowedByAnother() {
        breakUntilOpen();
        redis.fail(new CongestedException("no connection is free", null));
        time.advance(CircuitBreaker.PAUSE);
        take(LOCAL, 1);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);

        redis.mend();
        time.advance(CircuitBreaker.PAUSE);
        assertThat(take(LOCAL, 1).answers()).noneMatch(Answer::fallback);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
    }
}
