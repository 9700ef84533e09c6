package io.ratelimit.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend;
import io.ratelimit.Backend.Condition;
import io.ratelimit.BucketSpec;
import io.ratelimit.BucketStore;
import io.ratelimit.ManualTimeSource;
import io.ratelimit.ThrottleListener;
import io.ratelimit.ThrottlePolicy;
import io.ratelimit.ThrottlePolicy.Mode;
import io.ratelimit.Throttlers;
import io.ratelimit.actuate.RateLimitActuateAutoConfiguration.RateLimitHealthIndicator;
import io.ratelimit.remote.Deadline;
import io.ratelimit.remote.FailoverBucketStore;
import io.ratelimit.remote.FailoverBucketStore.FailureRule;
import io.ratelimit.remote.RoutingBucketStore;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;

class RateLimitHealthIndicatorTests {

    private static final BucketSpec SPEC = BucketSpec.of("9/1d");

    private final ManualTimeSource time = new ManualTimeSource();
    private final Remote remote = new Remote();

    /** Returns a store on which policies depend; the indicator probes the backend that it is given. */
    private FailoverBucketStore remote() {
        return new FailoverBucketStore(
                "Remote",
                BucketStore.local(time),
                BucketStore.local(time),
                1,
                policy -> FailureRule.LOCAL,
                new Deadline(time, Duration.ofSeconds(1)));
    }

    private Health health(ThrottlePolicy... policies) {
        return new RateLimitHealthIndicator(
                        new Throttlers(
                                List.of(policies),
                                new RoutingBucketStore(BucketStore.local(time), remote(), policy -> !policy.name()
                                        .startsWith("local")),
                                time,
                                ThrottleListener.NONE),
                        remote,
                        policy -> policy.name().endsWith("deny"))
                .health();
    }

    @Test
    void aBackendWithoutBucketsIsNotProbed() {
        Health health = health(
                ThrottlePolicy.of("local-deny", SPEC),
                ThrottlePolicy.of("off", SPEC).withMode(Mode.OFF));
        assertThat(health).isEqualTo(Health.up().build());
        assertThat(remote.probes).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void theBackendIsProbedOnceInAnyCondition(Condition condition) {
        remote.condition = condition;
        health(ThrottlePolicy.of("one", SPEC), ThrottlePolicy.of("two", SPEC, "user"));
        assertThat(remote.probes).isEqualTo(1);
    }

    @Test
    void theConditionAfterTheProbeIsReported() {
        remote.afterProbe = Condition.DOWN;
        assertThat(health(ThrottlePolicy.of("deny", SPEC)).getStatus()).isEqualTo(Status.DOWN);
        remote.afterProbe = Condition.UP;
        assertThat(health(ThrottlePolicy.of("deny", SPEC)).getStatus()).isEqualTo(Status.UP);
    }

    @ParameterizedTest
    @EnumSource(
            value = Condition.class,
            names = {"DOWN", "MISCONFIGURED"})
    void isDownIfAPolicyDeniesBecauseOfTheFailure(Condition condition) {
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

    /** One broken key must not take all instances out of rotation. */
    @ParameterizedTest
    @CsvSource({"MISCONFIGURED, UP", "DOWN, DOWN"})
    void isUpIfABackendThatIsMisconfiguredForSomeCallsAnswersTheCheck(Condition condition, Status status) {
        remote.condition = condition;
        remote.answers = true;
        Health health = health(ThrottlePolicy.of("deny", SPEC));
        assertThat(health.getStatus()).isEqualTo(status);
        assertThat(health.getDetails()).containsEntry("condition", condition).containsEntry("cause", "it is broken");
        assertThat(health.getDetails().containsKey("refusing")).isEqualTo(condition == Condition.DOWN);
    }

    @Test
    void isUpIfAFallbackDecides() {
        remote.condition = Condition.DOWN;
        Health health = health(
                ThrottlePolicy.of("lenient", SPEC),
                ThrottlePolicy.of("shadow-deny", SPEC).withMode(Mode.SHADOW));
        assertThat(health.getStatus()).isEqualTo(Status.UP);
        assertThat(health.getDetails())
                .containsEntry("condition", Condition.DOWN)
                .doesNotContainKey("refusing");
    }

    private static final class Remote implements Backend {

        private Condition condition = Condition.UP;
        private @Nullable Condition afterProbe;
        private boolean answers;
        private int probes;

        @Override
        public String name() {
            return "Remote";
        }

        @Override
        public Backend.State state() {
            return new Backend.State(condition, Instant.EPOCH, condition == Condition.UP ? null : "it is broken");
        }

        @Override
        public boolean probe() {
            probes++;
            condition = afterProbe == null ? condition : afterProbe;
            return answers || condition == Condition.UP;
        }
    }
}
