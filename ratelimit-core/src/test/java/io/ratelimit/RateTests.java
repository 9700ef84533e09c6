package io.ratelimit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import java.util.SplittableRandom;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RateTests {

    @ParameterizedTest
    @CsvSource({
        "600/1m, 600, PT1M",
        "10/s, 10, PT1S",
        "600/minute, 600, PT1M",
        "1/2s, 1, PT2S",
        "5/100ms, 5, PT0.1S",
        "3/PT1M, 3, PT1M",
        "3/pt1m, 3, PT1M",
        "1/P1D, 1, P1D",
        "1/PT0.000001S, 1, PT0.000001S",
        "7/us, 7, PT0.000001S",
        "7/ms, 7, PT0.001S",
        "7/m, 7, PT1M",
        "7/h, 7, PT1H",
        "7/d, 7, P1D",
        "7/second, 7, PT1S",
        "7/hour, 7, PT1H",
        "7/day, 7, P1D",
        "7/2Hour, 7, PT2H",
        "' 600 / 1m ', 600, PT1M",
        "600/ 1 m, 600, PT1M",
        "600/1M, 600, PT1M",
        "600/Minute, 600, PT1M",
        "10000000000/s, 10000000000, PT1S",
        "10000/us, 10000, PT0.000001S",
    })
    void readsEverySpelling(String text, long tokens, Duration period) {
        assertThat(Rate.of(text)).isEqualTo(new Rate(tokens, period));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "/", "/s", "10", "10s"})
    void needsTokensAndAPeriod(String text) {
        assertRefused(text, "'%s' is not a rate: write the tokens and the period, such as '600/1m' or '10/s'", text);
    }

    @ParameterizedTest
    @CsvSource({
        "0.5/s, 0.5, 1/2s",
        "1.5/s, 1.5, 3/2s",
        "0.1/m, 0.1, 1/10m",
        "2.50/100ms, 2.50, 5/200ms",
        "1.0/h, 1.0, 1/1h"
    })
    void aFractionOfATokenIsAnsweredWithTheSameRateInWholeTokens(String text, String tokens, String whole) {
        assertRefused(
                text, "'%s' is not a rate: '%s' is not a whole number of tokens: write '%s'", text, tokens, whole);
    }

    @ParameterizedTest
    @CsvSource({
        "x/s, x",
        "1.5/fortnight, 1.5",
        "0.0/s, 0.0",
        "0.5/365d, 0.5",
        "1 0/s, 1 0",
        "\u0663/1s, \u0663",
        "6\uff100/1s, 6\uff100"
    })
    void needsAWholeNumberOfTokens(String text, String tokens) {
        assertRefused(text, "'%s' is not a rate: '%s' is not a whole number of tokens: write '600/1m'", text, tokens);
    }

    @Test
    void needsTokensThatFitALong() {
        assertRefused(
                "9999999999999999999/s",
                "'9999999999999999999/s' is not a rate: '9999999999999999999' is too many tokens: write '600/1m'");
    }

    @ParameterizedTest
    @CsvSource({
        "5/, ''",
        "5/1fortnight, 1fortnight",
        "5/--1s, --1s",
        "5/-, -",
        "5/1.5s, 1.5s",
        "5/1s/2, 1s/2",
        "5/\u0663s, \u0663s",
        "5/1\u0660s, 1\u0660s"
    })
    void needsAPeriodThatIsKnown(String text, String period) {
        assertRefused(
                text,
                "'%s' is not a rate: '%s' is not a period: write us, ms, s, m, h or d (as in '100ms'), second, minute,"
                        + " hour, day, week or month, or ISO-8601 such as 'PT1M'",
                text,
                period);
    }

    @ParameterizedTest
    @CsvSource({
        "5/PT, PT",
        "5/-minute, -minute",
        "5/99999999999999999999s, 99999999999999999999s",
        "5/9999999999999999d, 9999999999999999d"
    })
    void needsAPeriodThatCanBeRead(String text, String period) {
        assertRefused(text, "'%s' is not a rate: '%s' is not a duration that can be read", text, period);
    }

    @Test
    void aPeriodNeedsAUnit() {
        assertRefused("5/100", "'5/100' is not a rate: '100' has no unit: write '100ms' or '100s'");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            0/s                         | the tokens of a rate must be at least 1, but was 0
            -1/s                        | the tokens of a rate must be at least 1, but was -1
            10/0s                       | the period of a rate must be between 1us and 365d, but was 0s
            10/-1m                      | the period of a rate must be between 1us and 365d, but was -1m
            10/PT-1M                    | the period of a rate must be between 1us and 365d, but was -1m
            1/PT0.000000999S            | the period of a rate must be between 1us and 365d, but was PT0.000000999S
            1/366d                      | the period of a rate must be between 1us and 365d, but was 366d
            1/8761h                     | the period of a rate must be between 1us and 365d, but was 8761h
            1/PT9223372036854775807.5S  | the period of a rate must be between 1us and 365d, but was \
            PT2562047788015215H30M7.5S
            1/PT1.0000005S              | the period of a rate must be whole microseconds, but was PT1.0000005S
            10000000001/s               | a rate must be at most 10,000,000,000 tokens a second, but was 10000000001/1s
            10001/us                    | a rate must be at most 10,000,000,000 tokens a second, but was 10001/1us
            9223372036854775807/365d    | a rate must be at most 10,000,000,000 tokens a second, but was \
            9223372036854775807/365d
            """)
    void staysInTheDomain(String text, String message) {
        assertRefused(text, "%s", message);
    }

    private static void assertRefused(String text, String message, Object... values) {
        assertThatIllegalArgumentException().isThrownBy(() -> Rate.of(text)).withMessage(message, values);
    }

    @ParameterizedTest
    @ValueSource(strings = {"600/1m", "10/1s", "1/2s", "5/100ms", "1/1us", "3/90m", "1/365d", "7/2h", "1/1d"})
    void isWrittenAsItIsRead(String text) {
        assertThat(Rate.of(text)).hasToString(text);
    }

    @RepeatedTest(200)
    void aRateCanBeReadFromItsText(RepetitionInfo run) {
        Rate rate = Specs.randomRate(new SplittableRandom(run.getCurrentRepetition()));
        assertThat(Rate.of(rate.toString()))
                .as("seed %d", run.getCurrentRepetition())
                .isEqualTo(rate);
    }
}
