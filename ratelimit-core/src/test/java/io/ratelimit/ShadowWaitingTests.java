package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ThrottlePolicy.Mode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A policy in shadow mode whose calls may wait: it denies exactly the calls that enforcement would, and holds none. */
@Timeout(60)
class ShadowWaitingTests {

    private static final ThrottlePolicy WATCHED = ThrottlePolicy.of(
                    "watched", BucketSpec.of("1/s").withCapacity(2))
            .withMode(Mode.SHADOW)
            .withMaxWait(Duration.ofSeconds(4))
            .withQueueLimit(3);
    private static final ThrottlePolicy ENFORCED = ThrottlePolicy.of(
                    "enforced", BucketSpec.of("1/s").withCapacity(1))
            .withMaxWait(Duration.ofSeconds(60))
            .withQueueLimit(9);

    private final ManualTimeSource time = new ManualTimeSource();
    private final List<Decision> decisions = new ArrayList<>();
    private final Throttlers throttlers =
            new Throttlers(List.of(WATCHED, ENFORCED), BucketStore.local(time), time, decisions::add);

    private Decision watched(Duration maxWait) throws InterruptedException {
        assertThat(throttlers.global("watched").tryAcquire(1, maxWait)).isTrue();
        return decisions.get(decisions.size() - 1);
    }

    private Decision watched() throws InterruptedException {
        return watched(WATCHED.maxWait());
    }

    @Test
    void aCallThatWouldWaitIsAllowedUnlessTheQueueIsFull() throws InterruptedException {
        List<Outcome> outcomes = new ArrayList<>();
        List<Duration> waits = new ArrayList<>();
        for (int i = 0; i < 7; i++) {
            Decision decision = watched();
            outcomes.add(decision.outcome());
            waits.add(decision.waitFor());
        }

        assertThat(outcomes)
                .startsWith(Outcome.ALLOWED, Outcome.ALLOWED, Outcome.ALLOWED, Outcome.ALLOWED, Outcome.ALLOWED);
        assertThat(outcomes.subList(5, 7)).containsOnly(Outcome.QUEUE_FULL);
        assertThat(waits.subList(0, 5)).extracting(Duration::toSeconds).containsExactly(0L, 0L, 1L, 2L, 3L);
        assertThat(time.waiting()).as("no call is held").isZero();
    }

    @Test
    void aPlaceInTheQueueIsFreeWhenTheTurnWouldHaveCome() throws InterruptedException {
        for (int i = 0; i < 5; i++) {
            watched();
        }
        assertThat(throttlers.waiting("watched")).isEqualTo(3);
        time.advance(Duration.ofMillis(999));
        assertThat(watched().outcome()).isEqualTo(Outcome.QUEUE_FULL);
        time.advance(Duration.ofMillis(1));

        assertThat(throttlers.waiting("watched")).isEqualTo(2);
        assertThat(watched().waitFor()).isEqualTo(Duration.ofSeconds(3));
        assertThat(watched().outcome()).isEqualTo(Outcome.QUEUE_FULL);
        time.advance(Duration.ofSeconds(9));
        assertThat(throttlers.waiting("watched")).isZero();
    }

    @Test
    void aCallThatWouldWaitTooLongIsDeniedAndTakesNoPlace() throws InterruptedException {
        watched();
        watched();
        watched(Duration.ofSeconds(1));

        assertThat(watched(Duration.ofSeconds(1)).outcome()).isEqualTo(Outcome.TOO_LONG);
        assertThat(watched(Duration.ZERO).outcome()).isEqualTo(Outcome.DENIED);
        assertThat(throttlers.waiting("watched")).isEqualTo(1);
        assertThat(watched(Duration.ofSeconds(2)).waitFor()).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void aCallInterruptedInAnotherPolicysQueueGivesBackItsShadowTokens() throws Exception {
        List<Charge> charges = List.of(
                throttlers.global("enforced").charge(1),
                throttlers.global("watched").charge(1));
        throttlers.decide(charges);
        assertThat(throttlers.snapshot("watched").available()).isEqualTo(1);
        CompletableFuture<List<Answer>> waiter = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                waiter.complete(throttlers.acquire(charges).answers());
            } catch (InterruptedException interrupted) {
                waiter.complete(List.of());
            }
        });
        thread.start();
        Threads.await(() -> time.waiting() == 1);
        assertThat(throttlers.snapshot("watched").available()).isZero();

        thread.interrupt();

        assertThat(waiter.get()).isEmpty();
        assertThat(throttlers.snapshot("watched").available()).isEqualTo(1);
    }
}
