package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimit.Backend.Condition;
import io.ratelimit.Decision.Answer;
import io.ratelimit.Decision.Outcome;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A failed backend neither allows nor denies, and its state shows whether it must be corrected. */
class BackendTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("policy", BucketSpec.of("1/1s"));

    @Test
    void anOutageDiffersFromAMisconfiguration() {
        RuntimeException cause = new IllegalStateException("closed");
        BackendException outage = new BackendException("no answer", cause);
        BackendException misconfiguration = new BackendException("READONLY", null, true);

        assertThat(outage.isMisconfiguration()).isFalse();
        assertThat(outage).hasMessage("no answer").hasCause(cause);
        assertThat(misconfiguration.isMisconfiguration()).isTrue();
        assertThat(Backend.State.failed(outage).condition()).isEqualTo(Condition.DOWN);
        assertThat(Backend.State.failed(misconfiguration).condition()).isEqualTo(Condition.MISCONFIGURED);
        assertThat(Backend.State.failed(misconfiguration).cause()).isEqualTo("READONLY");
        assertThat(Backend.State.up().cause()).isNull();
        assertThat(Backend.State.up().since()).isBeforeOrEqualTo(Instant.now());
    }

    @Test
    void itIsThrownOftenSoItHasNoTrace() {
        assertThat(new BackendException("no answer").getStackTrace()).isEmpty();
    }

    @Test
    void aFailureOutweighsDenialsAndTimeMendsIt() {
        Decision decision = Decision.of(
                List.of(answer(Outcome.DENIED, 3), answer(Outcome.BACKEND_FAILED, 1), answer(Outcome.QUEUE_FULL, 2)));
        assertThat(decision.outcome()).isEqualTo(Outcome.BACKEND_FAILED);
        assertThat(decision.allowed()).isFalse();
        assertThat(decision.retryNanos()).isEqualTo(3);
        assertThat(decision.decisiveDenial().retryNanos()).isEqualTo(1);
        assertThat(Decision.of(List.of(answer(Outcome.BACKEND_FAILED, 1), answer(Outcome.NEVER_FITS, 0)))
                        .outcome())
                .as("no time mends that")
                .isEqualTo(Outcome.NEVER_FITS);
    }

    private static Answer answer(Outcome outcome, long retryNanos) {
        return Answer.denied(Charge.of(POLICY, "", 1), outcome, Duration.ofNanos(retryNanos));
    }
}
