package io.ratelimit.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend.Condition;
import io.ratelimit.BackendException;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.CompareAndSetBucketStore.BucketName;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.SharedSlots;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.Throttlers;
import io.ratelimit.remote.Deadline.CongestedException;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.inflight.RegisterStore;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Slots of calls in flight while their store fails. */
class FailoverSlotsTests {

    private static final ThrottlePolicy EXPORTS = ThrottlePolicy.of("exports", BucketSpec.inFlight(4), "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final Deadline deadline = new Deadline(time, Duration.ofMillis(100));
    private final FailoverBucketStore store = new FailoverBucketStore(
            "Redis", new Failing(), BucketStore.local(time), 0.5, policy -> FailureRule.ALLOW, deadline);
    private BackendException judged = new BackendException("gone");
    private @Nullable Decision denials;
    private Runnable duringClaim = () -> {};
    private CompletableFuture<RegisterStore.Reply> reply =
            CompletableFuture.failedFuture(new IllegalStateException("not judged"));

    /** A store whose claims fail with a reason that is judged later. */
    private final class Failing implements BucketStore, RegisterStore {

        @Override
        public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
            duringClaim.run();
            return reply;
        }

        @Override
        public BackendException failure(Throwable failure, long began) {
            return judged;
        }

        @Override
        public Decision take(List<Charge> charges) {
            if (denials != null) {
                return denials;
            }
            throw judged;
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            throw judged;
        }

        @Override
        public void giveBack(List<Answer> taken) {
            throw judged;
        }

        @Override
        public BucketSnapshot snapshot(Charge charge) {
            throw judged;
        }

        @Override
        public void reset(Charge charge) {
            throw judged;
        }
    }

    private Outcome take() {
        return Objects.requireNonNull(store.slots(EXPORTS))
                .take(Charge.of(EXPORTS, "alice", 1))
                .outcome();
    }

    @Test
    void theRuleAllowsEveryCallWhileTheStoreFails() {
        for (int i = 0; i < 10; i++) {
            assertThat(take()).isEqualTo(Outcome.ALLOWED);
        }
        assertThat(store.backend().state().condition()).isEqualTo(Condition.DOWN);
    }

    @Test
    void aFloodDoesNotLiftTheLimit() {
        judged = new CongestedException("this process is busy", null);
        assertThat(List.of(take(), take(), take()))
                .containsExactly(Outcome.ALLOWED, Outcome.ALLOWED, Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(store.backend().state().condition()).isEqualTo(Condition.UP);
    }

    @Test
    void aRequestOfWhichACallHasFailedIsDecidedAsInAnOutage() {
        ThrottlePolicy rate = ThrottlePolicy.of("rate", BucketSpec.of("1/1h"));
        reply = new CompletableFuture<>();
        deadline.open(new Deadline.Request());
        try {
            assertThat(store.take(List.of(Charge.of(rate, "", 1))).allowed()).isTrue();
            for (int i = 0; i < 10; i++) {
                assertThat(take()).isEqualTo(Outcome.ALLOWED);
            }
        } finally {
            deadline.close();
        }
    }

    @Test
    void theCommandOfALateClaimIsCancelled() {
        reply = new CompletableFuture<>();
        Objects.requireNonNull(store.slots(EXPORTS)).enqueue(Charge.of(EXPORTS, "alice", 1), () -> 4);
        assertThat(reply).isNotDone();
        time.advance(Duration.ofMillis(200));
        assertThat(reply).isCancelled();
    }

    /** The rule of a bucket alone decides while its denial is remembered, and no claim is made. */
    @Test
    void aRememberedDenialMakesNoClaim() {
        ThrottlePolicy chat = ThrottlePolicy.of("chat", BucketSpec.of("1/1h").withInFlight(2), "user");
        Charge charge = Charge.of(chat, "alice", 1);
        denials = Decision.of(List.of(Answer.denied(charge, Outcome.DENIED, Duration.ofSeconds(30))));
        for (int i = 0; i < 5; i++) {
            SharedSlots.Request slot = Objects.requireNonNull(store.slots(chat)).request(charge);
            assertThat(store.takeWithSlots(List.of(charge), List.of(slot)).outcome())
                    .isEqualTo(Outcome.DENIED);
            assertThat(slot.slot() == null).isEqualTo(i > 0);
        }
    }

    /** Tokens that were taken ahead don't come back while a later call waits for its own. */
    @Test
    void aCallWithoutASlotHasTakenNoTokensAhead() throws InterruptedException {
        ThrottlePolicy line = ThrottlePolicy.of("line", BucketSpec.of("1/1s")).withMaxWait(Duration.ofSeconds(10));
        Charge token = Charge.of(line, "", 1);
        BucketStore local = BucketStore.local(time);
        BucketStore both =
                new RoutingBucketStore(local, store, policy -> policy.name().equals("exports"));
        Throttlers throttlers = new Throttlers(List.of(line, EXPORTS), both, time, ThrottleListener.NONE);
        local.take(List.of(token));
        reply = CompletableFuture.completedFuture(new RegisterStore.Reply(0, 4));
        duringClaim = () -> local.reserve(List.of(token));

        Decision denied = throttlers.acquire(List.of(token, Charge.of(EXPORTS, "alice", 1)));
        assertThat(denied.outcome()).isEqualTo(Outcome.TOO_MANY_IN_FLIGHT);
        assertThat(local.reserve(List.of(token)).waitFor()).isEqualTo(Duration.ofSeconds(2));
    }
}
