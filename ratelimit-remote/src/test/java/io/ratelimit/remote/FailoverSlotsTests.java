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
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.remote.Deadline.CongestedException;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.inflight.RegisterStore;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Slots of calls in flight while their store fails. */
class FailoverSlotsTests {

    private static final ThrottlePolicy EXPORTS = ThrottlePolicy.of("exports", BucketSpec.inFlight(4), "user");

    private final ManualTimeSource time = new ManualTimeSource();
    private final FailoverBucketStore store = new FailoverBucketStore(
            "Redis",
            new Failing(),
            BucketStore.local(time),
            0.5,
            policy -> FailureRule.ALLOW,
            new Deadline(time, Duration.ofMillis(100)));
    private BackendException judged = new BackendException("gone");

    /** A store whose claims fail with a reason that is judged later. */
    private final class Failing implements BucketStore, RegisterStore {

        @Override
        public CompletableFuture<Reply> set(BucketName key, Claim claim, Duration timeToLive) {
            return CompletableFuture.failedFuture(new IllegalStateException("not judged"));
        }

        @Override
        public BackendException failure(Throwable failure, long began) {
            return judged;
        }

        @Override
        public Decision take(List<Charge> charges) {
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
}
