package io.ratelimit.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimit.policy.RateLimitProperties.RejectionDelay;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RejectionDelayTests {

    @ParameterizedTest
    @CsvSource({"500ms, PT0.5S, 500ms", " 2s , PT2S, 2s", "PT2S, PT2S, 2s", "0s, PT0S, 0s", "1m, PT1M, 1m"})
    void readsADurationWithAUnit(String text, Duration time, String written) {
        RejectionDelay delay = RejectionDelay.of(text);
        assertThat(delay.time()).isEqualTo(time);
        assertThat(delay).hasToString(written);
        assertThat(delay.isNone()).isEqualTo(time.isZero());
    }

    @ParameterizedTest
    @ValueSource(strings = {"500", "0", "-5", "", "-", "2 x", "--2s", "99999999999999999999s"})
    void rejectsOtherTexts(String text) {
        assertThatIllegalArgumentException().isThrownBy(() -> RejectionDelay.of(text));
    }

    @Test
    void isBetweenZeroAndAMinute() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RejectionDelay(Duration.ofNanos(-1)))
                .withMessageStartingWith("rejection-delay must be between 0s and 1m, but was ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RejectionDelay(Duration.ofMinutes(1).plusNanos(1)))
                .withMessageStartingWith("rejection-delay must be between 0s and 1m, but was ");
    }
}
