package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.BackendException;
import io.ratelimit.BackendState;
import io.ratelimit.BackendState.Condition;
import io.ratelimit.BucketSnapshot;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.Charge;
import io.ratelimit.Decision;
import io.ratelimit.Decision.Answer;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;

class RateLimitHealthIndicatorTests {

    private static final BucketSpec SPEC = BucketSpec.of("9/1d");

    private final Remote remote = new Remote();

    private Health health(ThrottlePolicy... policies) {
        Throttlers throttlers =
                new Throttlers(List.of(policies), remote, new ManualTimeSource(), ThrottleListener.NONE);
        return new RateLimitHealthIndicator(
                        throttlers, remote, policy -> !policy.name().startsWith("local"), policy -> policy.name()
                                .endsWith("deny"))
                .health();
    }

    @Test
    void aBackendThatNoPolicyHasBucketsInIsNotAsked() {
        Health health = health(
                ThrottlePolicy.of("local-deny", SPEC),
                ThrottlePolicy.of("off", SPEC).withMode(Mode.OFF));
        assertThat(health).isEqualTo(Health.up().build());
        assertThat(remote.looks).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"UP, 1", "DOWN, 1", "MISCONFIGURED, 0"})
    void itIsAskedOnceUnlessAskingMayGoWellWhereTakingDoesNot(Condition condition, int looks) {
        remote.condition = condition;
        health(ThrottlePolicy.of("one", SPEC), ThrottlePolicy.of("two", SPEC, "user"));
        assertThat(remote.looks).hasSize(looks);
    }

    @ParameterizedTest
    @EnumSource(
            value = Condition.class,
            names = {"DOWN", "MISCONFIGURED"})
    void itIsDownWhereThatRefusesRequests(Condition condition) {
        remote.condition = condition;
        Health health = health(
                ThrottlePolicy.of("lenient", SPEC),
                ThrottlePolicy.of("deny", SPEC),
                ThrottlePolicy.of("shadow-deny", SPEC).withMode(Mode.SHADOW));
        assertThat(health.getStatus()).isEqualTo(Status.DOWN);
        assertThat(health.getDetails())
                .containsEntry("backend", "Remote")
                .containsEntry("condition", condition)
                .containsEntry("since", Instant.EPOCH)
                .containsEntry("cause", "it is broken")
                .containsEntry("refusing", List.of("deny"));
    }

    @Test
    void itIsUpWhereSomethingElseHolds() {
        remote.condition = Condition.DOWN;
        Health health = health(
                ThrottlePolicy.of("lenient", SPEC),
                ThrottlePolicy.of("shadow-deny", SPEC).withMode(Mode.SHADOW));
        assertThat(health.getStatus()).isEqualTo(Status.UP);
        assertThat(health.getDetails())
                .containsEntry("condition", Condition.DOWN)
                .doesNotContainKey("refusing");
    }

    /** Has no buckets, and notes who looks. */
    private static final class Remote implements BucketStore, Backend {

        private final List<Charge> looks = new ArrayList<>();
        private Condition condition = Condition.UP;

        @Override
        public String name() {
            return "Remote";
        }

        @Override
        public BackendState state() {
            return new BackendState(condition, Instant.EPOCH, condition == Condition.UP ? null : "it is broken");
        }

        @Override
        public BucketSnapshot look(Charge charge) {
            looks.add(charge);
            throw new BackendException("it is broken");
        }

        @Override
        public Decision take(List<Charge> charges) {
            throw new AssertionError("only looked at");
        }

        @Override
        public Decision reserve(List<Charge> charges) {
            throw new AssertionError("only looked at");
        }

        @Override
        public void giveBack(List<Answer> taken) {
            throw new AssertionError("only looked at");
        }

        @Override
        public void forget(Charge charge) {
            throw new AssertionError("only looked at");
        }
    }
}
