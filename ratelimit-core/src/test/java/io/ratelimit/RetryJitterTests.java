package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RetryJitterTests {

    @ParameterizedTest
    @CsvSource({
        "1ms-5ms, PT0.001S, PT0.005S",
        "' 1ms - 5ms ', PT0.001S, PT0.005S",
        "0ms-1s, PT0S, PT1S",
        "5ms-5ms, PT0.005S, PT0.005S",
        "PT1S-PT2S, PT1S, PT2S",
        "1000us-1d, PT0.001S, P1D",
    })
    void readsTheLeastAndTheMost(String text, Duration min, Duration max) {
        assertThat(RetryJitter.of(text)).isEqualTo(new RetryJitter(min, max));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', textBlock = """
                    ""         | '' is not a retry jitter: write the minimum and the maximum, such as '1ms-5ms'
                    5ms        | '5ms' is not a retry jitter: write the minimum and the maximum, such as '1ms-5ms'
                    -5ms       | '-5ms' is not a retry jitter: write the minimum and the maximum, such as '1ms-5ms'
                    1-5ms      | '1' has no unit: write '1ms' or '1s'
                    1ms-5      | '5' has no unit: write '5ms' or '5s'
                    5ms-1ms    | the minimum of retry-jitter must not exceed its maximum, but 5ms is more than 1ms: write '1ms-5ms'
                    1us-5ms    | the minimum of retry-jitter must be whole milliseconds, 0ms or more, but was 1us
                    1ms-5500us | the maximum of retry-jitter must be whole milliseconds, 0ms or more, but was 5500us
                    1ms-PT-1S  | the maximum of retry-jitter must be whole milliseconds, 0ms or more, but was -1s
                    1ms-25h    | the maximum of retry-jitter must be at most 1d, but was 25h
                    """)
    void aMessageStatesTheErrorAndACorrectExample(String text, String message) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RetryJitter.of(text))
                .withMessage(message);
    }

    @Test
    void bothBoundsAreInclusiveAndReached() {
        RetryJitter jitter = RetryJitter.of("1ms-5ms");
        Set<Long> seen = new TreeSet<>();
        for (int i = 0; i < 2_000; i++) {
            seen.add(jitter.nextNanos());
        }
        assertThat(seen).containsExactly(1_000_000L, 2_000_000L, 3_000_000L, 4_000_000L, 5_000_000L);
    }

    @Test
    void equalBoundsAreNotRandomAndNoneIsZero() {
        assertThat(RetryJitter.of("7ms-7ms").nextNanos()).isEqualTo(7_000_000);
        assertThat(RetryJitter.NONE.nextNanos()).isZero();
    }

    @Test
    void isWrittenAsItIsRead() {
        assertThat(RetryJitter.of("1ms-5ms")).hasToString("1ms-5ms");
        assertThat(RetryJitter.NONE).hasToString("0s-0s");
        assertThat(RetryJitter.of(RetryJitter.NONE.toString())).isEqualTo(RetryJitter.NONE);
    }
}
