package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The longest wait and the queue limit of a policy. */
class PolicyWaitTests {

    private static final ThrottlePolicy POLICY = ThrottlePolicy.of("api", BucketSpec.of("10/s"));

    @ParameterizedTest
    @CsvSource({
        "2s, PT2S",
        "' 500ms ', PT0.5S",
        "1us, PT0.000001S",
        "PT2S, PT2S",
        "pt1m, PT1M",
        "minute, PT1M",
        "0s, PT0S",
        "365d, P365D"
    })
    void readsAWaitAsAPeriod(String text, Duration maxWait) {
        assertThat(ThrottlePolicy.parseMaxWait(text)).isEqualTo(maxWait);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "2     | '2' has no unit: write '2ms' or '2s'",
                "0     | '0' has no unit: write '0ms' or '0s'",
                "-1s   | max-wait must be between 0 and 365 days, but was -1s",
                "-     | '-' is not a duration: write a number and a unit, such as '2s' or '500ms'",
                "PT-1S | max-wait must be between 0 and 365 days, but was -1s",
                "366d  | max-wait must be between 0 and 365 days, but was 366d",
                "P366D | max-wait must be between 0 and 365 days, but was 366d",
                "1000000d | max-wait must be between 0 and 365 days, but was PT24000000H",
                "soon  | 'soon' is not a duration: write a number and a unit, such as '2s' or '500ms'",
            })
    void rejectsAnInvalidWait(String text, String message) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> ThrottlePolicy.parseMaxWait(text))
                .withMessage(message);
    }

    @Test
    void inCodeAWaitAbove365DaysCountsAs365Days() {
        assertThat(POLICY.withMaxWait(Duration.ofDays(366)).maxWait()).isEqualTo(Duration.ofDays(365));
        assertThat(POLICY.withMaxWait(Duration.ofSeconds(Long.MAX_VALUE)).maxWait())
                .isEqualTo(Duration.ofDays(365));
        assertThat(Charge.of(POLICY, "", 1).withMaxWait(Duration.ofDays(366)).maxWait())
                .isEqualTo(Duration.ofDays(365));
    }

    @Test
    void aMessageStatesTheRange() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> POLICY.withMaxWait(Duration.ofMillis(-1)))
                .withMessage("max-wait must be zero or more, but was -1ms");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> POLICY.withQueueLimit(0))
                .withMessage("queue-limit must be at least 1, but was 0");
    }

    @Test
    void isDescribedInWords() {
        assertThat(POLICY.withMaxWait(Duration.ofMillis(1500)).withQueueLimit(7).describeWaiting())
                .isEqualTo("at most 7 wait in the queue, for at most 1500ms");
        assertThat(POLICY.describeWaiting()).isEqualTo("no call waits in the queue");
    }
}
